/**
 * The vendor of the bench: raw sockets and ready bytes, so that it costs little beside what is measured. Speaks just
 * enough of the Messages wire; the model's name in the request says what to do. `node bench/upstream.ts <port>`.
 */

import { createServer, type Socket } from "node:net"

/** Between two events of a stream: 200 tokens a second, a fast model. */
const tickMs = 5
/** Text events of one stream, after the head and before the end. */
export const streamChunks = 300

const text = "The quick brown fox jumps over the lazy dog and runs into the wide green field. ".repeat(4)
const usage = { input_tokens: 250, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 80 }

/** 0.6 KB, the size of a short answer. */
const whole = JSON.stringify({
  id: "msg_01BenchBenchBenchBench",
  type: "message",
  role: "assistant",
  model: "bench",
  content: [{ type: "text", text }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage,
})
const wholeAnswer = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_bench\r\ncontent-length: ${whole.length}\r\n\r\n${whole}`,
)

const chunk = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n`
const event = (data: { type: string; [field: string]: unknown }): string =>
  chunk(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)

const message = { ...JSON.parse(whole), content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
const streamHead = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n" +
    event({ type: "message_start", message }) +
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
)
const delta = Buffer.from(
  event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: " token" } }),
)
const streamEnd = Buffer.from(
  event({ type: "content_block_stop", index: 0 }) +
    event({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage }) +
    event({ type: "message_stop" }) +
    chunk(""),
)
const shortStream = Buffer.concat([streamHead, delta, streamEnd])

const streams = new Map<Socket, number>()

const tick = (): void => {
  for (const [socket, left] of streams) {
    if (left > 0) {
      streams.set(socket, left - 1)
      socket.write(delta)
    } else {
      streams.delete(socket)
      socket.write(streamEnd)
    }
  }
}

/** What each model does with its socket. */
const models: readonly (readonly [name: string, answer: (socket: Socket) => void])[] = [
  ["bench-stream", socket => void (socket.write(streamHead) && streams.set(socket, streamChunks))],
  ["bench-first", socket => void socket.write(shortStream)],
  // Left open after its first event, as a model that thinks for long.
  ["bench-open", socket => void socket.write(Buffer.concat([streamHead, delta]))],
]

/** The model stands near the beginning of every request of the bench. */
const answer = (socket: Socket, body: Buffer): void => {
  const beginning = body.toString("latin1", 0, 200)
  const model = models.find(([name]) => beginning.includes(`"${name}"`))
  if (model === undefined) socket.write(wholeAnswer)
  else model[1](socket)
}

/** Requests come with a length, one after the other; of a large body only the first piece is kept. */
const serve = (socket: Socket): void => {
  let rest: Buffer = Buffer.alloc(0)
  let missing = 0
  let begun: Buffer = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on("error", () => socket.destroy())
  socket.on("close", () => streams.delete(socket))
  socket.on("data", (data: Buffer) => {
    if (missing > 0) {
      missing -= data.length
      if (missing <= 0) answer(socket, begun)
      return
    }
    rest = rest.length === 0 ? data : Buffer.concat([rest, data])
    const end = rest.indexOf("\r\n\r\n")
    if (end < 0) return
    const length = Number(/^content-length: *(\d+)/im.exec(rest.toString("latin1", 0, end))?.[1] ?? 0)
    begun = rest.subarray(end + 4)
    missing = length - begun.length
    rest = Buffer.alloc(0)
    if (missing <= 0) answer(socket, begun)
  })
}

if (import.meta.main) {
  setInterval(tick, tickMs)
  createServer(serve).listen(Number(process.argv[2]), "127.0.0.1", 4096)
}
