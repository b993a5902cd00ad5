/** What clients do wrong on the wire: one clear answer each, a closed connection where bytes are left, nothing held. */
import t, { type Test } from "tap"
import { testKey } from "../../core/testing.ts"
import { ask, rawClient } from "../fixtures/client.ts"
import { until, untilStill } from "../fixtures/until.ts"
import { answering, chunked, type Handler, headOf, lastChunk } from "../fixtures/vendor.ts"
import { goodMicros, openRelay, type Relay, sample, wires } from "../fixtures/wires.ts"

const path = "/v1/gateway/vendor-a/v1/messages"
const body = JSON.stringify(wires.messages.request(false))
const length = `content-length: ${body.length}`
const good = answering({ body: wires.messages.whole })
const bearer = `authorization: Bearer ${testKey}`

const head = (...fields: readonly string[]): string => [`POST ${path} HTTP/1.1`, ...fields, "", ""].join("\r\n")
const usual = ["host: gateway", bearer, "user-agent: raw"]

/** Raw requests and the only answer that each may get. Behind each lies a second request, which must not be answered. */
const refused: readonly (readonly [name: string, status: number, bytes: string])[] = [
  ["a length and a transfer coding", 400, head(...usual, length, "transfer-encoding: chunked") + body],
  ["two lengths", 400, head(...usual, length, "content-length: 5") + body],
  ["two lengths in one field", 400, head(...usual, "content-length: 5, 6") + body],
  ["a length with a sign", 400, head(...usual, "content-length: +5") + body],
  ["a transfer coding that hides chunked", 400, head(...usual, "transfer-encoding: xchunked") + body],
  ["two transfer codings", 400, head(...usual, "transfer-encoding: gzip, chunked") + body],
  ["chunked in capitals", 400, head(...usual, "transfer-encoding: Chunked") + body],
  ["a blank before the colon", 400, head(...usual, "transfer-encoding : chunked") + body],
  ["a folded field", 400, head(...usual, "x-a: 1\r\n b") + body],
  ["a bare line feed", 400, head(...usual, length, "x-a: 1\nx-b: 2") + body],
  ["a NUL in a field", 400, head(...usual, length, "x-a: \u0000") + body],
  ["no host", 400, head(bearer, "user-agent: raw", length) + body],
  ["two hosts", 400, head(...usual, "host: other", length) + body],
  ["a host that bends a URL", 400, head("host: x/#@y", bearer, length) + body],
  ["an absolute target", 400, head(...usual, length).replace(path, `http://evil${path}`) + body],
  ["a target with two slashes", 400, head(...usual, length).replace(path, `/${path}`) + body],
  ["two keys in one kind of field", 400, head(...usual, "authorization: Bearer tg_other", length) + body],
  ["another version", 505, head(...usual, length).replace("HTTP/1.1", "HTTP/2.0") + body],
  ["an unknown method", 501, head(...usual, length).replace("POST", "PROPFIND") + body],
  ["a coded body", 415, head(...usual, length, "content-encoding: gzip") + body],
  ["too many fields", 431, head(...usual, length, ...Array.from({ length: 101 }, (_, at) => `x-${at}: 1`)) + body],
  ["fields that are too large", 431, head(...usual, length, `x-a: ${"x".repeat(17_000)}`) + body],
  ["an expectation that nobody knows", 417, head(...usual, length, "expect: 200-ok") + body],
]

const second = head(...usual, length) + body

t.test("ambiguous and malformed requests", async t => {
  const relay = await openRelay(t, good)
  for (const [name, status, bytes] of refused) {
    const client = await rawClient(t, relay.url)
    client.write(bytes + second)
    const text = await client.closed
    t.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), name)
    t.equal(text.match(/HTTP\/1\.1 \d{3}/g)?.length, 1, `${name}: one answer only`)
    t.match(text, /connection: close/i, name)
    t.match(text, '"detail"', name)
  }
  t.equal(relay.vendor.connections.accepted, 0)
  t.equal(await relay.spent(), 0)
})

t.test("an ambiguous request without a body ends its connection too; an unknown path does not", async t => {
  const relay = await openRelay(t, good)
  const get = (target: string, ...fields: readonly string[]): string =>
    [`GET ${target} HTTP/1.1`, ...fields, "", ""].join("\r\n")
  for (const ambiguous of [
    get("//v1/gateway/models/", ...usual),
    get("/v1/gateway/models/", ...usual, "host: other"),
  ]) {
    const client = await rawClient(t, relay.url)
    client.write(ambiguous + second)
    const text = await client.closed
    t.match(text, /^HTTP\/1\.1 400 /)
    t.match(text, /connection: close/i)
    t.equal(text.match(/HTTP\/1\.1 \d{3}/g)?.length, 1)
  }
  const client = await rawClient(t, relay.url)
  client.write(get("/nowhere", ...usual) + get("/elsewhere", ...usual, "connection: close"))
  t.same(
    [...(await client.closed).matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status),
    ["404", "404"],
  )
  t.equal(await relay.spent(), 0)
})

t.test("a request behind the last one of its connection is neither answered nor paid", async t => {
  const relay = await openRelay(t, good)
  const ends = [head(...usual, length, "connection: close"), head(...usual, length).replace("HTTP/1.1", "HTTP/1.0")]
  for (const [at, last] of ends.entries()) {
    const client = await rawClient(t, relay.url)
    client.write(last + body + second)
    client.write(second)
    const text = await client.closed
    t.same(text.match(/HTTP\/1\.1 \d{3}/g), ["HTTP/1.1 200"], "and takes nothing from the answer before it")
    t.match(text, '"end_turn"')
    t.equal(await relay.spent(), (at + 1) * goodMicros)
    t.equal(relay.vendor.requests.length, at + 1)
  }
})

t.test("two different keys are 401, the same one twice is fine", async t => {
  const relay = await openRelay(t, good)
  const other = await ask(relay.url + wires.messages.path(false), body, { headers: { "x-api-key": "tg_other" } })
  t.match(other, { status: 401 })
  t.match(other.text, "Invalid API key")
  t.equal((await ask(relay.url + wires.messages.path(false), body, { headers: { "x-api-key": testKey } })).status, 200)
})

const badChunks: readonly (readonly [name: string, bytes: string])[] = [
  ["a size that is no number", "xyz\r\nabc\r\n0\r\n\r\n"],
  ["a size that is too small", `2\r\n${body}\r\n0\r\n\r\n`],
  ["a negative size", `-5\r\n${body}\r\n0\r\n\r\n`],
  ["a bare line feed behind the size", `${body.length.toString(16)}\n${body}\r\n0\r\n\r\n`],
]

t.test("bad chunks end the connection with one 400, and reach no vendor", async t => {
  const relay = await openRelay(t, good)
  for (const [name, bytes] of badChunks) {
    const client = await rawClient(t, relay.url)
    client.write(head(...usual, "transfer-encoding: chunked") + bytes)
    const text = await client.closed
    t.match(text, /^HTTP\/1\.1 400 /, name)
    t.equal(text.match(/HTTP\/1\.1/g)?.length, 1, name)
  }
  t.equal(relay.vendor.connections.accepted, 0)
  t.equal(await relay.spent(), 0)
  t.equal(sample(await relay.metrics(), "tollgate_body_bytes_in_flight"), 0)
})

t.test("trailers of a chunked body are no fields", async t => {
  const relay = await openRelay(t, good)
  const client = await rawClient(t, relay.url)
  const trailer = "0\r\nauthorization: Bearer tg_other\r\nx-evil: 1\r\n\r\n"
  client.write(
    head(...usual, "transfer-encoding: chunked", "connection: close", "trailer: x-evil") + chunked(body) + trailer,
  )
  t.match(await client.closed, /^HTTP\/1\.1 200 /)
  t.notMatch((await relay.vendor.next()).head, /evil|trailer/i)
})

t.test("pipelined requests are answered in their order", async t => {
  const relay = await openRelay(t, good)
  const client = await rawClient(t, relay.url)
  const credits = ["GET /v1/gateway/credits/ HTTP/1.1", ...usual, "", ""].join("\r\n")
  client.write(second + credits + head(...usual, length, "connection: close") + body)
  const text = await client.closed
  t.same(text.match(/HTTP\/1\.1 \d{3}|"type":"message"|"credit_balance"/g), [
    "HTTP/1.1 200",
    '"type":"message"',
    "HTTP/1.1 200",
    '"credit_balance"',
    "HTTP/1.1 200",
    '"type":"message"',
  ])
  t.equal(await relay.spent(), 2 * goodMicros)
})

t.test("garbage behind a request whose answer is under way never gets into that answer", async t => {
  const gate = Promise.withResolvers<void>()
  const events = wires.messages.events
  const handler: Handler = async ({ send }) => {
    await send(headOf({ headers: { "content-type": "text/event-stream", "transfer-encoding": "chunked" } }))
    await send(chunked(events.slice(0, 3).join("")))
    await gate.promise
    await send(chunked(events.slice(3).join("")) + lastChunk)
  }
  const relay = await openRelay(t, handler)
  const client = await rawClient(t, relay.url)
  const request = JSON.stringify(wires.messages.request(true))
  client.write(head(...usual, `content-length: ${request.length}`) + request)
  await client.until("Gr")
  client.write("\u0000\u0001garbage\r\n\r\n")
  const text = await client.closed
  gate.resolve()
  t.equal(text.match(/HTTP\/1\.1/g)?.length, 1)
  t.equal(await relay.spent(), goodMicros)
})

t.test("an upgrade on a plain route is 426", async t => {
  const relay = await openRelay(t, good)
  const client = await rawClient(t, relay.url)
  client.write(
    ["GET /v1/gateway/responses/ HTTP/1.1", ...usual, "connection: upgrade", "upgrade: websocket", "", ""].join("\r\n"),
  )
  t.match(await client.closed, /^HTTP\/1\.1 426 /)
})

const megabyte = 1024 * 1024
const limit = 25 * megabyte
const padded = (bytes: number): string => {
  const empty = '{"model":"claude","messages":[],"x":""}'
  return empty.replace('""', `"${"y".repeat(bytes - empty.length)}"`)
}

const upload = async (t: Test, relay: Relay, bytes: string, isChunked: boolean): Promise<string> => {
  const client = await rawClient(t, relay.url)
  client.write(
    head(...usual, "connection: close", isChunked ? "transfer-encoding: chunked" : `content-length: ${bytes.length}`),
  )
  for (let at = 0; at < bytes.length; at += megabyte) {
    const piece = bytes.slice(at, at + megabyte)
    client.write(isChunked ? chunked(piece) : piece)
  }
  if (isChunked) client.write(lastChunk)
  return client.closed
}

t.test("25 MB pass to the byte, one more is 413, declared and counted", async t => {
  const relay = await openRelay(t, good)
  for (const isChunked of [false, true]) {
    const exact = padded(limit)
    t.equal(exact.length, limit)
    t.match(await upload(t, relay, exact, isChunked), /^HTTP\/1\.1 200 /)
    const text = await upload(t, relay, `${exact} `, isChunked)
    t.match(text, /^HTTP\/1\.1 413 /)
    t.match(text, '"detail":"Request body too large. Maximum size is 25MB."')
  }
  t.equal(await relay.spent(), 2 * goodMicros)
  t.equal(sample(await relay.metrics(), "tollgate_body_bytes_in_flight"), 0)
})

t.test("a declared length over the limit is refused before its body", async t => {
  const relay = await openRelay(t, good)
  const client = await rawClient(t, relay.url)
  client.write(head(...usual, `content-length: ${limit + 1}`))
  t.match(await client.until("25MB"), /^HTTP\/1\.1 413 /)
})

t.test("bodies that do not fit into the memory for bodies are shed with 503 and a time", async t => {
  const relay = await openRelay(t, good, { gateway: { limits: { bodies_in_memory: "4MB" } } })
  const slow = await rawClient(t, relay.url)
  const first = padded(3 * megabyte)
  slow.write(head(...usual, "connection: close", `content-length: ${first.length}`) + first.slice(0, -1))
  await until(async () => sample(await relay.metrics(), "tollgate_body_bytes_in_flight") >= 3 * megabyte - 1)
  const text = await upload(t, relay, padded(2 * megabyte), false)
  t.match(text, /^HTTP\/1\.1 503 /)
  t.match(text, /retry-after: 1/i)
  slow.write(first.slice(-1))
  t.match(await slow.closed, /^HTTP\/1\.1 200 /)
  t.match(await upload(t, relay, padded(2 * megabyte), false), /^HTTP\/1\.1 200 /)
})

t.test("a client that reads slowly pauses the vendor: memory does not grow with the answer", async t => {
  const piece = chunked(`data: {"type":"content_block_delta","delta":{"text":"${"x".repeat(65_000)}"}}\n\n`)
  let sent = 0
  const handler: Handler = async ({ send, socket }) => {
    await send(headOf({ headers: { "content-type": "text/event-stream", "transfer-encoding": "chunked" } }))
    while (!socket.destroyed && sent < 200 * megabyte) {
      await send(piece)
      sent += piece.length
    }
  }
  const relay = await openRelay(t, handler, { settings: { on_client_abort: "cancel" } })
  const client = await rawClient(t, relay.url)
  const request = JSON.stringify(wires.messages.request(true))
  client.write(head(...usual, `content-length: ${request.length}`) + request)
  await client.until("xxx")
  client.socket.pause()
  await untilStill(() => sent)
  t.ok(sent < 50 * megabyte, `the vendor was stopped after ${sent} bytes`)
  client.socket.destroy()
  await until(() => relay.vendor.connections.open === 0)
  t.ok((await relay.spent()) > 0)
})
