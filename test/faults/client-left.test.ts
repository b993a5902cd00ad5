/** A client that leaves: the vendor is read on or cut off, as the configuration says, and what it made is paid. */
import t, { type Test } from "tap"
import { testClock } from "../../core/testing.ts"
import { postHead, type RawClient, rawClient } from "../fixtures/client.ts"
import { until, untilStill } from "../fixtures/until.ts"
import { answering, chunked, type Handler, headOf, lastChunk, streamHead } from "../fixtures/vendor.ts"
import {
  allWires,
  beginning,
  goodMicros,
  halting,
  openRelay,
  type Relay,
  type RelayOptions,
  sample,
  type Wire,
  wires,
} from "../fixtures/wires.ts"

const call = async (t: Test, relay: Relay, wire: Wire, stream: boolean): Promise<RawClient> => {
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wire.request(stream))
  client.write(postHead(`/v1/gateway${wire.path(stream)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
  return client
}

const usual = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }

/** UTF-8 bytes of the first text, at 3.5 bytes a token. */
const firstTokens = Math.ceil(Buffer.byteLength("Grüße") / 3.5)

/** The text of each wire's request: what is estimated where the vendor tells its input at the end only. */
const requestText: Readonly<Record<string, string>> = { generate: "userhi", responses: "gpthi", chat: "gptuserhi" }

/** What `cancel` costs after the first text: the input that was reported, else the estimate, and the output counted. */
const cancelledMicros = (wire: Wire): number => {
  const input = wire.adapter === "anthropic" ? 10 : Math.ceil(requestText[wire.name]!.length / 3)
  return input * 1_000 + firstTokens * 2_000
}

for (const wire of allWires) {
  t.test(`${wire.name}: mid-stream with drain, the vendor finishes and its whole usage is paid`, async t => {
    const gate = Promise.withResolvers<void>()
    const relay = await openRelay(t, halting(wire, gate.promise))
    const client = await call(t, relay, wire, true)
    await client.until("Gr")
    client.socket.destroy()
    await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
    t.ok((await relay.balance()).held > 0, "the hold stays with the drain")
    t.equal(relay.vendor.connections.open, 1)
    gate.resolve()
    t.equal(await relay.spent(), goodMicros)
    const line = relay.lines.find(line => line.msg === "call")
    t.match(line, { outcome: "abandoned", status: 200 })
    const metrics = await relay.metrics()
    t.match(metrics, `tollgate_streams_ended_total{vendor="${wire.adapter}",how="abandoned"} 1`)
    for (const [type, tokens] of [
      ["input", 10],
      ["output", 20],
    ]) {
      t.match(metrics, new RegExp(`^tollgate_tokens_total\\{.*type="${type}"\\} ${tokens}$`, "m"))
    }
    const later = relay.lines.find(({ msg }) => msg === "billed after its client left")
    t.match(later, { id: line?.id, micros: goodMicros, source: "vendor", usage: { input: 10, output: 20 } })
  })

  t.test(`${wire.name}: mid-stream with cancel, the vendor is cut off and what was seen is paid`, async t => {
    const relay = await openRelay(t, halting(wire, new Promise(() => {})), { settings: { on_client_abort: "cancel" } })
    const client = await call(t, relay, wire, true)
    await client.until("Gr")
    client.socket.destroy()
    await until(() => relay.vendor.connections.open === 0)
    t.equal(await relay.spent(), cancelledMicros(wire))
  })

  t.test(`${wire.name}: before the head of a whole answer, it is waited for and paid`, async t => {
    const gate = Promise.withResolvers<void>()
    const handler: Handler = async ({ send }) => {
      await gate.promise
      await send(headOf({ body: wire.whole }) + wire.whole)
    }
    const relay = await openRelay(t, handler)
    const client = await call(t, relay, wire, false)
    await relay.vendor.next()
    client.socket.destroy()
    await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
    gate.resolve()
    t.equal(await relay.spent(), goodMicros)
    t.match(
      relay.lines.find(line => line.msg === "call"),
      { outcome: "abandoned", status: 499 },
    )
  })

  t.test(`${wire.name}: before the head with cancel, nothing was seen and nothing is paid`, async t => {
    const relay = await openRelay(t, () => new Promise(() => {}), { settings: { on_client_abort: "cancel" } })
    const client = await call(t, relay, wire, true)
    await relay.vendor.next()
    client.socket.destroy()
    await until(() => relay.vendor.connections.open === 0)
    t.equal(await relay.spent(), 0)
  })
}

t.test("a stream that was left before its vendor told the tier is paid by the one that was asked for", async t => {
  const { responses } = wires
  const request: Wire["request"] = stream => ({ ...responses.request(stream), service_tier: "priority" })
  const events = responses.events.map(event => event.replace('"in_progress"', '"in_progress","service_tier":"auto"'))
  const wire: Wire = { ...responses, request, events }
  const relay = await openRelay(t, halting(wire, new Promise(() => {})), {
    settings: { on_client_abort: "cancel" },
    price: { ...usual, when: [{ if: { service_tier: "priority" }, times: 2 }] },
  })
  const client = await call(t, relay, wire, true)
  await client.until("Gr")
  client.socket.destroy()
  const estimated = Math.ceil("gpthipriority".length / 3)
  t.equal(await relay.spent(), 2 * (estimated * 1_000 + firstTokens * 2_000))
})

t.test("an upload that is broken off reaches no vendor and costs nothing", async t => {
  const relay = await openRelay(t)
  const client = await rawClient(t, relay.url)
  client.write(`${postHead("/v1/gateway/chat/completions/", ["content-length: 1000"])}{"model":`)
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 1)
  client.socket.destroy()
  t.equal(await relay.spent(), 0)
  t.equal(relay.vendor.connections.accepted, 0)
  t.equal(sample(await relay.metrics(), "tollgate_body_bytes_in_flight"), 0)
})

t.test("the body of a call whose vendor is read on takes its memory until then", async t => {
  const gate = Promise.withResolvers<void>()
  const handler: Handler = async ({ send }) => {
    await gate.promise
    await send(headOf({ body: wires.chat.whole }) + wires.chat.whole)
  }
  const relay = await openRelay(t, handler, { gateway: { limits: { bodies_in_memory: "4MB" } } })
  const memory = async (): Promise<number> => sample(await relay.metrics(), "tollgate_body_bytes_in_flight")
  const upload = async (): Promise<RawClient> => {
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify({ ...wires.chat.request(false), metadata: { note: "x".repeat(3_000_000) } })
    client.write(postHead("/v1/gateway/chat/completions/", [`content-length: ${body.length}`]) + body)
    return client
  }
  const client = await upload()
  await relay.vendor.next()
  client.socket.destroy()
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
  t.ok((await memory()) > 3_000_000)
  await (await upload()).until("503 ")
  gate.resolve()
  t.equal(await relay.spent(), goodMicros)
  t.equal(await memory(), 0)
  await (await upload()).until("200 ")
})

const drainLimits: readonly (readonly [
  name: string,
  options: RelayOptions,
  tail: (send: Parameters<Handler>[0]["send"]) => Promise<void>,
])[] = [
  [
    "more bytes than a drain may read",
    { gateway: { upstream: { drain: { bytes: "64KB" } } } },
    send => send(chunked(`: ${"x".repeat(100_000)}\n`)),
  ],
  ["no place for another drain", { gateway: { upstream: { drain: { count: 0 } } } }, async () => {}],
]

for (const [name, options, tail] of drainLimits) {
  t.test(`${name}: the vendor is cut off, what was seen is paid`, async t => {
    const left = Promise.withResolvers<void>()
    const handler: Handler = async ({ send }) => {
      await send(streamHead + chunked(beginning(wires.messages)))
      await left.promise
      await tail(send)
    }
    // Its clock stands still: the drain's time must not be what ends it.
    const relay = await openRelay(t, handler, { ...options, clock: testClock() })
    const client = await call(t, relay, wires.messages, true)
    await client.until("Gr")
    client.socket.destroy()
    await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
    left.resolve()
    await until(() => relay.vendor.connections.open === 0)
    t.equal(await relay.spent(), 10_000 + firstTokens * 2_000)
  })
}

for (const moment of ["mid-stream", "before the head"] as const) {
  t.test(`a stream left ${moment} is read on for ten seconds, by the clock`, async t => {
    const clock = testClock()
    const content = moment === "mid-stream" ? beginning(wires.messages) : ""
    const handler: Handler = async ({ send, socket }) => {
      if (content !== "") await send(streamHead + chunked(content))
      await new Promise(resolve => socket.once("close", resolve))
    }
    const relay = await openRelay(t, handler, { clock })
    const client = await call(t, relay, wires.messages, true)
    await relay.vendor.next()
    if (content !== "") await client.until("Gr")
    client.socket.destroy()
    await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
    await clock.advance(9_000)
    t.equal(relay.vendor.connections.open, 1)
    await clock.advance(1_500)
    await until(() => relay.vendor.connections.open === 0)
    t.equal(await relay.spent(), content === "" ? 0 : 10_000 + firstTokens * 2_000)
  })
}

t.test(
  "500 left streams that never end: drains keep to their number, then to their time; every one is paid",
  async t => {
    const clock = testClock()
    const handler: Handler = async ({ send, socket }) => {
      await send(streamHead + chunked(beginning(wires.messages)))
      await new Promise(resolve => socket.once("close", resolve))
    }
    const relay = await openRelay(t, handler, { clock, gateway: { upstream: { drain: { count: 100 } } } })
    const clients = await Promise.all(Array.from({ length: 500 }, () => call(t, relay, wires.messages, true)))
    await Promise.all(clients.map(client => client.until("Gr")))
    for (const client of clients) client.socket.destroy()
    await until(() => relay.vendor.connections.open === 100)
    await clock.advance(11_000)
    await until(() => relay.vendor.connections.open === 0)
    t.equal(await relay.spent(), 500 * (10_000 + firstTokens * 2_000))
  },
)

t.test("a client that read too slowly leaves: its vendor is read on at once", async t => {
  let sent = 0
  const comment = chunked(`: ${"x".repeat(65_000)}\n\n`)
  const handler: Handler = async ({ send }) => {
    const first = beginning(wires.messages)
    await send(streamHead + chunked(first))
    for (; sent < 400; sent += 1) await send(comment)
    await send(chunked(wires.messages.events.join("").slice(first.length)) + lastChunk)
  }
  const gateway = { upstream: { drain: { bytes: "1GB" } } }
  const relay = await openRelay(t, handler, { clock: testClock(), gateway })
  const client = await call(t, relay, wires.messages, true)
  await client.until("Gr")
  client.socket.pause()
  await untilStill(() => sent)
  t.ok(sent < 400, "the vendor waits for the client")
  client.socket.destroy()
  t.equal(await relay.spent(), goodMicros)
})

const failures: Readonly<Record<string, Handler>> = {
  dies: ({ reset }) => reset(),
  refuses: answering({ status: 500, body: "{}" }),
}

for (const [how, fail] of Object.entries(failures)) {
  t.test(`a vendor that ${how} after the client left: nothing stays held, and its drain's place is free`, async t => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let calls = 0
    const handler: Handler = async exchange => {
      const at = calls++
      await gates[at]!.promise
      await (at === 0 ? fail(exchange) : exchange.send(headOf({ body: wires.messages.whole }) + wires.messages.whole))
    }
    const relay = await openRelay(t, handler, { clock: testClock(), gateway: { upstream: { drain: { count: 1 } } } })
    for (const [at, { resolve }] of gates.entries()) {
      const client = await call(t, relay, wires.messages, false)
      await relay.vendor.next()
      client.socket.destroy()
      await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
      resolve()
      t.equal(await relay.spent(), at * goodMicros)
    }
  })
}

t.test("a pipelined client that leaves: the second call is noticed too, and nothing stays held", async t => {
  const relay = await openRelay(t, () => new Promise(() => {}), { settings: { on_client_abort: "cancel" } })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wires.messages.request(true))
  const request = postHead("/v1/gateway/vendor-a/v1/messages", [`content-length: ${body.length}`]) + body
  client.write(request + request)
  await until(() => relay.vendor.requests.length === 2)
  client.socket.destroy()
  await until(() => relay.vendor.connections.open === 0)
  t.equal(await relay.spent(), 0)
})

t.test("a client that closes its sending side has left, as far as node is told, and pays what was made", async t => {
  const gate = Promise.withResolvers<void>()
  const relay = await openRelay(t, halting(wires.messages, gate.promise))
  const client = await call(t, relay, wires.messages, true)
  await client.until("Gr")
  client.socket.end()
  gate.resolve()
  t.equal(await relay.spent(), goodMicros)
})

for (const end of ["destroy", "resetAndDestroy"] as const) {
  t.test(`a client that leaves within the last bytes of its answer (${end}) has left, and pays it`, async t => {
    const body = wires.chat.whole.replace("世界", "x".repeat(20_000_000))
    const relay = await openRelay(t, ({ send }) => send(headOf({ body }) + body))
    const client = await call(t, relay, wires.chat, false)
    client.socket.pause()
    await until(async () => (await relay.balance()).spent > 0)
    t.equal(sample(await relay.metrics(), "tollgate_requests_in_flight"), 1)
    client.socket[end]()
    t.equal(await relay.spent(), goodMicros)
    t.match(
      relay.lines.filter(({ msg }) => msg === "call"),
      [{ status: 200, outcome: "abandoned", micros: goodMicros }],
    )
  })
}
