/** Clients that wait for `100 Continue`: told to go on when their body is wanted, and never beside a refusal. */
import { setImmediate } from "node:timers/promises"
import t, { type Test } from "tap"
import type { Plugin, Route } from "../../core/index.ts"
import { testGateway, testKey } from "../../core/testing.ts"
import { postHead, rawClient, sha256 } from "../fixtures/client.ts"
import { answering, chunked, type Handler, lastChunk } from "../fixtures/vendor.ts"
import { goodMicros, openRelay, type Relay, sample, wires } from "../fixtures/wires.ts"

const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
const path = "/v1/gateway/vendor-a/v1/messages"
const body = JSON.stringify({ ...wires.messages.request(false), metadata: { user_id: "Grüße 世界" } })
const bytes = Buffer.from(body)
const relayed = sha256(body.replace('"claude"', '"vendor-model"'))
const expecting = ["expect: 100-continue", `content-length: ${bytes.length}`]
const head = (...fields: readonly string[]): string => postHead(path, fields)
const good = answering({ body: wires.messages.whole })

/** The statuses of all answers, interim ones too, in their order. */
const statuses = (text: string): readonly string[] => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(match => match[1]!)

const waiting = async (t: Test, relay: Relay, request: string) => {
  const client = await rawClient(t, relay.url)
  client.write(request)
  t.equal(await client.until("\r\n\r\n"), goOn, "nothing but the word to go on")
  return client
}

t.test(
  "a client is told to go on when the guards are passed; its body arrives intact, the connection stays",
  async t => {
    const relay = await openRelay(t, good)
    const client = await waiting(t, relay, head(...expecting))
    t.equal(relay.vendor.connections.accepted, 0)
    for (const byte of bytes) client.write(Uint8Array.of(byte))
    t.same(statuses(await client.until('"end_turn"')), ["100", "200"])
    t.equal((await relay.vendor.next()).sha256, relayed)
    client.write(head(`content-length: ${bytes.length}`, "connection: close"))
    client.write(bytes)
    t.same(statuses(await client.closed), ["100", "200", "200"])
    t.equal(await relay.spent(), 2 * goodMicros)
  },
)

t.test("so is one that sends its body in chunks", async t => {
  const relay = await openRelay(t, good)
  const fields = ["expect: 100-continue", "transfer-encoding: chunked", "connection: close"]
  const client = await waiting(t, relay, head(...fields))
  for (const piece of [chunked(body.slice(0, 9)), chunked(body.slice(9)), lastChunk]) client.write(piece)
  t.same(statuses(await client.closed), ["100", "200"])
  t.equal((await relay.vendor.next()).sha256, relayed)
})

const key = `authorization: Bearer ${testKey}`

/** Heads whose body nobody wants. None is followed by one, and none of these clients closes by itself. */
const refused: readonly (readonly [name: string, status: string, head: string])[] = [
  ["a length over the limit", "413", head("expect: 100-continue", `content-length: ${25 * 1024 * 1024 + 1}`)],
  ["a bad key", "401", head(...expecting).replace(testKey, "tg_of_nobody_0000000000000000000000000000000")],
  ["no key", "401", head(...expecting).replace(`${key}\r\n`, "")],
  ["no user agent", "403", head(...expecting).replace("user-agent: raw\r\n", "")],
  ["an unknown path", "404", head(...expecting).replace(path, "/v1/messages")],
  ["another method", "405", head(...expecting).replace("POST", "PUT")],
  ["an ambiguous host", "400", head(...expecting, "host: other")],
  ["a coded body", "415", head(...expecting, "content-encoding: gzip")],
  ["an unknown path and a body in chunks", "404", head(expecting[0]!, "transfer-encoding: chunked").replace(path, "/")],
]

t.test("a refusal comes instead of the word to go on, and ends the connection", async t => {
  const relay = await openRelay(t, good)
  await Promise.all(
    refused.map(async ([name, status, request]) => {
      const client = await rawClient(t, relay.url)
      client.write(request)
      const text = await client.closed
      t.same(statuses(text), [status], name)
      t.match(text, /connection: close/i, name)
    }),
  )
  t.equal(relay.vendor.connections.accepted, 0)
  t.equal(await relay.spent(), 0)
})

t.test("a client that does not wait is served all the same", async t => {
  const relay = await openRelay(t, good)
  const client = await rawClient(t, relay.url)
  client.write(Buffer.concat([Buffer.from(head(...expecting, "connection: close")), bytes]))
  t.same(statuses(await client.closed), ["100", "200"])
  t.equal((await relay.vendor.next()).sha256, relayed)
})

t.test("a request behind one that was refused so is neither answered nor paid", async t => {
  const relay = await openRelay(t, good)
  const request = Buffer.concat([Buffer.from(head(...expecting)), bytes])
  for (const [status, from, to] of [
    ["401", testKey, "tg_of_nobody"],
    ["404", path, "/nowhere"],
  ] as const) {
    const client = await rawClient(t, relay.url)
    client.write(Buffer.concat([Buffer.from(request.toString("latin1").replace(from, to), "latin1"), request]))
    const text = await client.closed
    t.same(statuses(text), [status])
    t.match(text, /connection: close/i)
  }
  t.equal(await relay.spent(), 0)
  t.equal(relay.vendor.connections.accepted, 0)
})

t.test("behind another answer the word to go on waits for its turn", async t => {
  const gate = Promise.withResolvers<void>()
  const handler: Handler = async exchange => {
    await gate.promise
    await good(exchange)
  }
  const relay = await openRelay(t, handler)
  const client = await rawClient(t, relay.url)
  client.write(Buffer.concat([Buffer.from(head(`content-length: ${bytes.length}`)), bytes]))
  await relay.vendor.next()
  client.write(head(...expecting, "connection: close"))
  client.write(bytes)
  await relay.vendor.next()
  t.equal(client.received(), "")
  gate.resolve()
  t.same(statuses(await client.closed), ["200", "100", "200"])
})

t.test("HTTP/1.0 knows no interim answers", async t => {
  const relay = await openRelay(t, good)
  const client = await rawClient(t, relay.url)
  client.write(Buffer.concat([Buffer.from(head(...expecting).replace("HTTP/1.1", "HTTP/1.0")), bytes]))
  t.same(statuses(await client.closed), ["200"])
})

t.test("a client that was told to go on and leaves holds nothing", async t => {
  const relay = await openRelay(t, good)
  const client = await waiting(t, relay, head(...expecting))
  client.socket.destroy()
  t.equal(await relay.spent(), 0)
  t.equal(sample(await relay.metrics(), "tollgate_body_bytes_in_flight"), 0)
})

/** A public route of a plugin. */
const routeOf = (path: string, handle: Route["handle"]): Plugin => ({
  name: path.slice(1, -1),
  api: 1,
  setup: host =>
    host.route({
      method: "POST",
      path,
      access: "public",
      dialect: "plain",
      model: "none",
      charge: "none",
      limit: "none",
      handle,
    }),
})

const openRoute = async (t: Test, plugin: Plugin) => {
  const gateway = await testGateway({ gateway: { plugins: ["edge"], endpoints: [] }, plugins: [plugin] })
  t.teardown(() => gateway.close())
  return rawClient(t, gateway.url)
}

t.test(
  "a request behind one whose body is asked for later is not taken: the first answer ends the connection",
  async t => {
    const late = routeOf("/late/", async call => {
      await setImmediate() // what came in one piece is parsed by then
      return call.reply(200, (await call.body()).bytes)
    })
    const client = await openRoute(t, late)
    const request = Buffer.concat([Buffer.from(head(...expecting).replace(path, "/v1/gateway/late/")), bytes])
    client.write(Buffer.concat([request, request]))
    const text = await client.closed
    t.same(statuses(text), ["100", "200"])
    t.match(text, /connection: close/i)
    t.ok(text.endsWith(bytes.toString("latin1")))
  },
)

t.test("nobody is told to go on behind an answer", async t => {
  const hasty = routeOf("/hasty/", async call => {
    const answer = call.reply(200, "too late")
    await call.body().catch(() => {})
    return answer
  })
  const client = await openRoute(t, hasty)
  client.write(head(...expecting).replace(path, "/v1/gateway/hasty/"))
  const text = await client.closed
  t.same(statuses(text), ["200"])
  t.match(text, /connection: close/i)
  t.ok(text.endsWith("\r\n\r\ntoo late"))
})
