/** Raw requests that are nearly right: every answer is well formed, none is a 500, and the next client is served. */

import { connect } from "node:net"
import { setImmediate } from "node:timers/promises"
import { checkLedger } from "../../core/money/check.ts"
import { type TestGateway, testKey } from "../../core/testing.ts"
import { until } from "../fixtures/until.ts"
import { expect, type FuzzOptions, type FuzzReport, fuzz } from "./fuzz-report.ts"
import { openTarget } from "./fuzz-target.ts"
import { cutAnyhow, mutated } from "./mutate.ts"
import { between } from "./random.ts"

const chat = JSON.stringify({ model: "gpt", messages: [{ role: "user", content: "Say yes" }] })
const streamed = JSON.stringify({
  model: "claude",
  max_tokens: 9,
  stream: true,
  messages: [{ role: "user", content: "hi" }],
})
const fields = `Host: gateway\r\nUser-Agent: fuzz\r\nAuthorization: Bearer ${testKey}\r\nContent-Type: application/json\r\n`

const post = (path: string, body: string): string =>
  `POST /v1/gateway${path} HTTP/1.1\r\n${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const chunkedPost = (path: string, body: string): string => {
  const half = body.length >> 1
  const chunks = [body.slice(0, half), body.slice(half)].map(part => `${part.length.toString(16)}\r\n${part}\r\n`)
  return `POST /v1/gateway${path} HTTP/1.1\r\n${fields}Transfer-Encoding: chunked\r\n\r\n${chunks.join("")}0\r\n\r\n`
}

const get = (path: string): string => `GET /v1/gateway${path} HTTP/1.1\r\n${fields}\r\n`

const requests: readonly Buffer[] = [
  get("/models/"),
  get("/usage/?from=2026-01-01&to=2026-01-31&by=day"),
  post("/chat/completions/", chat),
  post("/vendor-a/v1/messages/", streamed),
  chunkedPost("/chat/completions/", chat),
  post("/vendor-b/v1beta/models/gemini:generateContent/", '{"contents":[{"parts":[{"text":"hi"}]}]}'),
  get("/models/") + get("/credits/"),
  post("/chat/completions/", chat) + get("/models/"),
  get("/realtime/").replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
  `OPTIONS * HTTP/1.1\r\n${fields}\r\n`,
].map(text => Buffer.from(text))

/** What requests are made ambiguous with. */
const words: readonly string[] = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  " ",
  "\t",
  ":",
  "\r\n\r\n",
  "Content-Length: 5\r\n",
  "Content-Length: -1\r\n",
  "Content-Length: 0x10\r\n",
  "Content-Length: 99999999999999999999\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: gzip, chunked\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Expect: 100-continue\r\n",
  "Connection: close\r\n",
  "Connection: upgrade\r\nUpgrade: h2c\r\n",
  "Host: other\r\n",
  "x-api-key: tg_other\r\n",
  "Content-Encoding: gzip\r\n",
  " HTTP/2.0",
  " HTTP/0.9",
  "http://other/",
  "//",
  "/../",
  "%2f",
  "%00",
  "%",
  "?",
  "#",
  "\\",
  "ffffffff\r\n",
  "0\r\n\r\n",
  ";ext=1",
  "\xff\xfe",
  "a".repeat(9_000),
  "x-long: ".padEnd(17_000, "y"),
  "x: y\r\n".repeat(120),
]

export const fuzzHttp = async (options: FuzzOptions): Promise<FuzzReport> => {
  const target = await openTarget()
  const port = Number(new URL(target.url).port)
  try {
    const report = await fuzz("http", options, async random => {
      const request = requests[between(0, requests.length - 1, random)] as Buffer
      const bytes = random() < 0.02 ? request : mutated(request, words, random)
      return statusesIn(await exchange(port, cutAnyhow(bytes, random), random() < 0.1))
    })
    await stillRight(target, report)
    return report
  } finally {
    await target.close()
  }
}

/** Sends the pieces, closes its half (or all of it), and gives what came until the end. */
const exchange = (port: number, pieces: readonly Buffer[], leaves: boolean): Promise<Buffer | undefined> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    const chunks: Buffer[] = []
    socket.setNoDelay(true)
    socket.setTimeout(10_000, () => {
      socket.destroy()
      reject(new Error(`no end after ${JSON.stringify(Buffer.concat(pieces).toString("latin1"))}`))
    })
    socket.on("error", () => {}) // refused while sending; what was answered has come
    socket.on("data", chunk => chunks.push(chunk))
    socket.on("close", () => resolve(leaves ? undefined : Buffer.concat(chunks)))
    const send = async (): Promise<void> => {
      for (const piece of pieces) {
        if (socket.destroyed) return
        socket.write(piece)
        await setImmediate()
      }
      if (leaves) socket.destroy()
      else socket.end()
    }
    socket.once("connect", () => void send())
  })

/**
 * A last answer that is cut is told as such: bytes after a request that make no request end the connection, and a cut
 * answer never looks whole.
 *
 * @throws Error when the bytes are not a row of answers
 */
const statusesIn = (bytes: Buffer | undefined): readonly string[] => {
  if (bytes === undefined) return ["left"]
  const statuses: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const headEnd = bytes.indexOf("\r\n\r\n", at)
    const head = bytes.toString("latin1", at, headEnd < 0 ? bytes.length : headEnd)
    const status = /^HTTP\/1\.1 (\d{3}) [^\r\n]*(?:\r\n|$)/.exec(head)?.[1]
    expect(headEnd > 0 && status !== undefined, `no answer: ${JSON.stringify(head.slice(0, 200))}`)
    expect(status !== "500", `500: ${bytes.toString("latin1", at, at + 800)}`)
    const end = bodyEnd(bytes, headEnd + 4, head)
    if (end === undefined) return [...statuses, "cut"]
    statuses.push(status as string)
    at = end
  }
  return statuses.length === 0 ? ["closed"] : statuses
}

/** `undefined` when the body does not come to its end. */
const bodyEnd = (bytes: Buffer, from: number, head: string): number | undefined => {
  if (/^HTTP\/1\.1 1/.test(head)) return from
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length !== undefined) return from + Number(length) <= bytes.length ? from + Number(length) : undefined
  expect(/\r\ntransfer-encoding: chunked/i.test(head), `without length: ${head}`)
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16)
    at = lineEnd + 2 + size + 2
    if (at > bytes.length) return undefined
    if (size === 0) return at
  }
}

/** The next client is served, nothing is held, the ledger is right. */
export const stillRight = async (target: TestGateway, report: FuzzReport): Promise<void> => {
  const { parts } = target.gateway
  const wrong = (message: string): void => void report.wrong.push(`${report.part}, seed ${report.seed}: ${message}`)
  const idle = async (): Promise<boolean> => (await target.balance()).held === 0
  await until(idle).catch(async () => wrong(`${(await target.balance()).held} micros are held by nobody`))
  for await (const { message } of checkLedger(parts.store)) wrong(message)
  const { status } = await target.call("/models/")
  if (status !== 200) wrong(`afterwards a client gets ${status}`)
  const failed = target.lines.filter(({ level }) => level === "error")
  if (failed.length > 0) wrong(`${failed.length} errors in the log, such as ${JSON.stringify(failed[0])}`)
}
