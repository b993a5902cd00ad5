/** Coded answers, although identity was asked for: readable for every client, metered all the same. */
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import t from "tap"
import { accepts } from "../../core/http/decoding.ts"
import { ask, postHead, rawClient, sha256 } from "../fixtures/client.ts"
import { answering, chunked, type Handler, headOf, streaming } from "../fixtures/vendor.ts"
import { allWires, goodMicros, openRelay, relayWires, sample, wires } from "../fixtures/wires.ts"

const coders: Readonly<Record<string, (bytes: string) => Buffer>> = {
  gzip: gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
  zstd: zstdCompressSync,
}

t.test("a client takes a coding that it names, with any weight but none", async t => {
  for (const field of ["gzip", "br, GZIP", "br;q=1, gzip;q=0.5", "gzip; q=0.001", ["br", "gzip"]]) {
    t.equal(accepts(field, "gzip"), true, String(field))
  }
  for (const field of [undefined, "", "br", "*", "x-gzip", "gzip;q=0", "gzip; q=0.000"]) {
    t.equal(accepts(field, "gzip"), false, String(field))
  }
})

for (const wire of allWires) {
  t.test(`${wire.name}: an answer that comes coded is readable, whole and streamed`, async t => {
    for (const [coding, code] of Object.entries(coders)) {
      for (const stream of [false, true]) {
        const plain = stream ? wire.events.join("") : wire.whole
        const coded = code(plain)
        const headers = { "content-encoding": coding }
        const handler = stream
          ? streaming(coded, { size: 9 }, headers)
          : answering({ body: coded, headers }, { size: 9 })
        const relay = await openRelay(t, handler)
        for (const accepted of [undefined, coding, `${coding};q=0, identity`, "*"]) {
          const options = accepted === undefined ? {} : { headers: { "accept-encoding": accepted } }
          const answer = await ask(relay.url + wire.path(stream), wire.request(stream), options)
          const name = `${coding}, ${stream ? "streamed" : "whole"}, accept-encoding: ${accepted}`
          t.equal(answer.status, 200, name)
          const keeps = wire.relayed && accepted === coding
          t.equal(answer.headers["content-encoding"], keeps ? coding : undefined, name)
          if (keeps) t.equal(sha256(answer.body), sha256(coded), name)
          else if (wire.relayed) t.equal(answer.text, plain, name)
          else t.match(answer.text, "Grüße", name)
        }
        t.equal(relay.vendor.requests[0]?.headers["accept-encoding"], "identity")
        t.equal(await relay.spent(), 4 * goodMicros, `${coding}, ${stream ? "streamed" : "whole"}`)
      }
    }
  })
}

t.test("an answer in many frames or members of its coding is read to its end, however they are cut", async t => {
  const { events, path, request } = wires.messages
  for (const coding of ["gzip", "zstd"]) {
    const body = Buffer.concat(events.map(event => coders[coding]!(event)))
    const headers = { "content-type": "text/event-stream", "content-encoding": coding }
    for (const size of [1, 50, body.length]) {
      const relay = await openRelay(t, answering({ body, headers }, { size }))
      const plain = await ask(relay.url + path(true), request(true))
      t.equal(plain.text, events.join(""), `${coding} in pieces of ${size}`)
      const options = { headers: { "accept-encoding": coding } }
      t.equal(sha256((await ask(relay.url + path(true), request(true), options)).body), sha256(body))
      t.equal(await relay.spent(), 2 * goodMicros)
    }
  }
})

t.test("a coded stream that a client takes as it is goes out as it comes", async t => {
  const gate = Promise.withResolvers<void>()
  const events = wires.messages.events
  const first = gzipSync(events.slice(0, 3).join(""), { finishFlush: constants.Z_SYNC_FLUSH })
  const handler: Handler = async ({ send, end }) => {
    const headers = { "content-type": "text/event-stream", "transfer-encoding": "chunked", "content-encoding": "gzip" }
    await send(headOf({ headers }))
    await send(chunked(first))
    await gate.promise
    end()
  }
  const relay = await openRelay(t, handler)
  const body = JSON.stringify(wires.messages.request(true))
  const client = await rawClient(t, relay.url)
  const fields = [`content-length: ${body.length}`, "accept-encoding: gzip"]
  client.write(postHead("/v1/gateway/vendor-a/v1/messages", fields) + body)
  t.match(await client.until(first.toString("latin1")), /^HTTP\/1\.1 200 /)
  gate.resolve()
  t.notMatch(
    await client.closed,
    /event: error|\r\n0\r\n\r\n/,
    "text in the middle of a coding would be read by nobody",
  )
})

t.test(
  "what is called coded and is not: an error, nothing charged; the client's own coding is its own affair",
  async t => {
    for (const wire of relayWires) {
      const relay = await openRelay(t, answering({ body: wire.whole, headers: { "content-encoding": "gzip" } }))
      const answer = await ask(relay.url + wire.path(false), wire.request(false))
      t.equal(answer.status, 502, wire.name)
      t.equal(await relay.spent(), 0, wire.name)
      t.ok(
        sample(await relay.metrics(), `tollgate_vendor_surprises_total{vendor="${wire.adapter}",kind="bad_encoding"}`) >
          0,
      )
    }
  },
)

t.test("an unknown coding, and a coding that ends too early, are errors", async t => {
  const whole = wires.messages.whole
  for (const [coding, body] of [
    ["compress", whole],
    ["gzip, br", whole],
    ["gzip", gzipSync(whole).subarray(0, -12)],
  ] as const) {
    const relay = await openRelay(t, answering({ body, headers: { "content-encoding": coding } }))
    const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
    t.equal(answer.status, 502, coding)
    t.equal(await relay.spent(), 0, coding)
  }
})

t.test("the spelling of identity codes nothing", async t => {
  const relay = await openRelay(
    t,
    answering({ body: wires.messages.whole, headers: { "content-encoding": "Identity" } }),
  )
  const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
  t.match(answer, { status: 200, text: wires.messages.whole })
})

t.test("a bomb is given up at its bound: an error before the head, nothing held, no memory kept", async t => {
  const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024, " "))
  const relay = await openRelay(t, answering({ body: bomb, headers: { "content-encoding": "gzip" } }))
  const answer = await ask(relay.url + wires.chat.path(false), wires.chat.request(false))
  t.equal(answer.status, 502)
  t.equal(await relay.spent(), 0)
})

t.test("an error answer that comes coded is read and passed on decoded", async t => {
  const error = JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: "no such field" } })
  const handler = answering({ status: 400, body: gzipSync(error), headers: { "content-encoding": "gzip" } })
  const relay = await openRelay(t, handler)
  const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false), {
    headers: { "accept-encoding": "gzip" },
  })
  t.match(answer, { status: 400, text: error })
  t.equal(answer.headers["content-encoding"], undefined)
})
