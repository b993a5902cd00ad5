/**
 * Recorded streams of vendors, bent and cut: every call ends, what the gateway translates stays well formed, nothing is
 * held for ever, and no balance is wrong.
 */

import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { setImmediate } from "node:timers/promises"
import { testClock } from "../../core/testing.ts"
import { recorded, recordedFiles } from "../fixtures/recorded.ts"
import { stillRight } from "./fuzz-http.ts"
import { expect, type FuzzOptions, type FuzzReport, fuzz } from "./fuzz-report.ts"
import { names, openTarget } from "./fuzz-target.ts"
import { cutAnyhow, mutated } from "./mutate.ts"
import { between } from "./random.ts"

const streamsOf = (folder: string): readonly Buffer[] =>
  recordedFiles(folder)
    .flatMap(name => recorded(folder, name))
    .filter(({ streamed }) => streamed)
    .map(({ body }) => body)

const hi = [{ role: "user", content: "hi" }]
const chat = (model: string) => ({ model, stream: true, messages: hi })

/** What is asked, and which recorded streams answer it. On its own wire a chunk passes as it is; a translated stream is judged event by event. */
const calls = [
  { path: "/chat/completions/", body: chat("gpt"), streams: streamsOf("openai-chat") },
  { path: "/responses/", body: { model: "gpt", stream: true, input: "hi" }, streams: streamsOf("openai-responses") },
  { path: "/chat/completions/", body: chat("claude"), streams: streamsOf("anthropic"), translated: true },
  { path: "/vendor-a/v1/messages/", body: { ...chat("claude"), max_tokens: 9 }, streams: streamsOf("anthropic") },
  { path: "/chat/completions/", body: chat("gemini"), streams: streamsOf("google"), translated: true },
  {
    path: "/vendor-b/v1beta/models/gemini:streamGenerateContent/?alt=sse",
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    streams: streamsOf("google"),
  },
] as const

/** What vendors' streams are bent with. */
const words: readonly string[] = [
  "\n\n",
  "\r\n\r\n",
  "\r",
  "\n",
  "data: ",
  "data: [DONE]\n\n",
  "data: {}\n\n",
  "data: null\n\n",
  "data: []\n\n",
  'data: {"error":{"message":"m","type":"server_error"}}\n\n',
  "event: error\n",
  "event: message_stop\n",
  ": ping\n\n",
  "\xef\xbb\xbf",
  "\xff",
  "\0",
  '"',
  "{",
  "}",
  "[",
  ",",
  "null",
  "-1",
  "1e400",
  "99999999999999999999",
  '"__proto__":{},',
  '"index":-1,',
  '"index":4294967296,',
  '"usage":null,',
  "\\ud800",
  "x".repeat(70_000),
]

/** 400 seconds by the gateway's clock: all its deadlines have passed. */
const turnsMax = 20_000
/** Of the machine's: a connection that the kernel makes a second time has nothing to do with the gateway. */
const patienceMs = 10_000

export const fuzzStreams = async (options: FuzzOptions): Promise<FuzzReport> => {
  let script: readonly Buffer[] = []
  let resets = false
  const vendor = createServer(async (request, response) => {
    for await (const _ of request);
    const { socket } = response
    if (socket === null) return
    socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    for (const piece of script) {
      await setImmediate()
      if (socket.destroyed) return
      socket.write(piece)
    }
    if (resets) socket.resetAndDestroy()
    else socket.end()
  })
  await new Promise<void>(resolve => vendor.listen(0, "127.0.0.1", resolve))
  const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
  const clock = testClock()
  const target = await openTarget(Object.fromEntries(names.map(name => [name, origin])), { clock })
  try {
    const report = await fuzz("streams", options, async random => {
      const { path, body, streams, ...more } = calls[between(0, calls.length - 1, random)] as (typeof calls)[number]
      const stream = streams[between(0, streams.length - 1, random)] as Buffer
      script = cutAnyhow(random() < 0.05 ? stream : mutated(stream, words, random), random)
      resets = random() < 0.2
      const leave = new AbortController()
      const calling = target
        .call(path, body, { signal: leave.signal })
        .then(answer => told(answer, "translated" in more))
      const ended = calling.then(
        one => one,
        error => {
          if (error instanceof Error && /fetch failed|terminated|aborted/.test(error.message)) return "cut"
          throw error
        },
      )
      // Time passes: pauses before a second try, deadlines, drains; in the end the vendor's rest after its faults.
      let over = false
      void ended
        .finally(() => {
          over = true
        })
        .catch(() => {})
      const patience = performance.now() + patienceMs
      const leaves = random() < 0.1 ? between(1, 50, random) : Number.POSITIVE_INFINITY
      for (let turn = 0; !over; turn += 1) {
        if (turn === leaves) leave.abort()
        await clock.advance(20)
        expect(turn < turnsMax || performance.now() < patience, `${path} does not end`)
      }
      await clock.advance(61_000)
      return [await ended]
    })
    await clock.advance(120_000)
    await stillRight(target, report)
    return report
  } finally {
    const closing = target.close()
    await clock.advance(60_000)
    await closing
    vendor.closeAllConnections()
    vendor.close()
  }
}

/** Its status. @throws Error when a translated stream holds an event that is no JSON */
const told = async (answer: Response, translated: boolean): Promise<string> => {
  const text = await answer.text()
  expect(answer.status !== 500 || !/internal/i.test(text), `500: ${text}`)
  if (translated && answer.status === 200) for (const line of text.split("\n")) wellFormed(line)
  return String(answer.status)
}

const wellFormed = (line: string): void => {
  if (!line.startsWith("data: ") || line === "data: [DONE]") return
  let right = false
  try {
    const event: unknown = JSON.parse(line.slice("data: ".length))
    right = typeof event === "object" && event !== null
  } catch {
    // told below
  }
  expect(right, `a client was sent ${line.slice(0, 300)}`)
}
