/** What vendors do wrong, on relayed and translated routes, whole and streamed: what the client gets and what it pays. */
import t, { type Test } from "tap"
import { ask } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, chunked, fakeVendor, type Handler, headOf, refusedOrigin, streamHead } from "../fixtures/vendor.ts"
import * as faults from "../fixtures/vendor-faults.ts"
import { beginning, beginningMicros, openRelay, type Relay, sample, type Wire, wires } from "../fixtures/wires.ts"

const endOf = (relay: Relay): Promise<void> => until(() => relay.vendor.connections.open === 0)

interface Row {
  readonly name: string
  readonly handler?: (wire: Wire, stream: boolean) => Handler
  /** In place of the fake vendor's own. */
  readonly origin?: () => Promise<string>
  /** The client's status; 200 with an error in it when the stream had begun. */
  readonly whole: number
  readonly stream: number
  /** Requests that the vendor got for a whole answer, and for a stream. */
  readonly tries: readonly [whole: number, stream: number]
  /** The label of `tollgate_errors_total` and, where it was tried again, the reason of that. */
  readonly label: string
  readonly reason?: string
  /** The answer was good HTTP: its connection may be used again. */
  readonly keepsSocket?: true
  /** It is late only after its first byte. */
  readonly begins?: true
}

const bodyOf = (wire: Wire, stream: boolean): { body: string; headers?: Record<string, string> } =>
  stream ? { body: beginning(wire), headers: { "content-type": "text/event-stream" } } : { body: wire.whole }
const forEver: Promise<void> = new Promise(() => {})

const rows: readonly Row[] = [
  {
    name: "refuses connections",
    origin: refusedOrigin,
    whole: 502,
    stream: 502,
    tries: [0, 0],
    label: "vendor_connect",
    reason: "upstream_unreachable",
  },
  {
    name: "has a name that nobody knows",
    origin: async () => "http://nobody-at-all.invalid",
    whole: 502,
    stream: 502,
    tries: [0, 0],
    label: "vendor_connect",
    reason: "upstream_unreachable",
  },
  {
    name: "resets before its head",
    handler: () => faults.resetBeforeHead,
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "ends before its head",
    handler: () => faults.endBeforeHead,
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "resets after its head",
    handler: (wire, stream) => faults.resetAfterHead(bodyOf(wire, stream)),
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "ends inside its body",
    handler: (wire, stream) => {
      const answer = bodyOf(wire, stream)
      return stream
        ? ({ send, end }) => send(streamHead + chunked(answer.body)).then(end)
        : faults.endInBody(answer, Buffer.byteLength(answer.body) - 3)
    },
    whole: 502,
    stream: 200,
    tries: [2, 1],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "announces more than it sends",
    handler: (wire, stream) => faults.wrongLength(bodyOf(wire, stream), 5),
    whole: 502,
    stream: 200,
    tries: [2, 1],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "says nothing at all",
    handler: () => () => forEver,
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_timeout",
    reason: "upstream_timeout",
  },
  {
    name: "says nothing after its head",
    handler: (wire, stream) => exchange => exchange.send(headOf(bodyOf(wire, stream))).then(() => forEver),
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_timeout",
    reason: "upstream_timeout",
  },
  {
    name: "falls silent inside its body",
    handler: (wire, stream) => {
      const { body } = bodyOf(wire, stream)
      const bytes = stream ? streamHead + chunked(body) : headOf({ body }) + body.slice(0, -3)
      return ({ send }) => send(bytes).then(() => forEver)
    },
    whole: 502,
    stream: 200,
    tries: [2, 1],
    label: "vendor_timeout",
    reason: "upstream_timeout",
    begins: true,
  },
  {
    name: "sends informational answers for ever",
    handler: () => faults.informational(Number.POSITIVE_INFINITY, () => {}),
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_timeout",
    reason: "upstream_timeout",
  },
  {
    name: "switches protocols unasked",
    handler: () => faults.unaskedUpgrade,
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "speaks no HTTP",
    handler: () => faults.garbage,
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "sends a head without measure",
    handler: () => faults.oversizedHead(200_000),
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "upstream_unavailable",
  },
  {
    name: "redirects",
    handler: () => answering({ status: 307, headers: { location: "http://elsewhere.invalid/" } }),
    whole: 502,
    stream: 502,
    tries: [2, 2],
    label: "vendor_5xx",
    reason: "server",
    keepsSocket: true,
  },
]

const columns: readonly (readonly [wire: Wire, stream: boolean])[] = [
  [wires.messages, false],
  [wires.messages, true],
  [wires.chat, false],
  [wires.chat, true],
]

const check = async (t: Test, row: Row, wire: Wire, stream: boolean): Promise<void> => {
  const name = `${wire.name}, ${stream ? "streamed" : "whole"}`
  const origin = await row.origin?.()
  // So long that a busy machine hands every try over in time.
  const late = row.label === "vendor_timeout" ? "1s" : "20s"
  const timeouts = { connect: "20s", first_byte: row.begins === true ? "20s" : late, idle: late }
  const relay = await openRelay(t, row.handler?.(wire, stream), {
    settings: { timeouts, ...(origin === undefined ? {} : { origin }) },
  })
  const answer = await ask(relay.url + wire.path(stream), wire.request(stream))
  const status = stream ? row.stream : row.whole
  t.equal(answer.status, status, name)
  t.equal(answer.end, "whole", name)
  t.match(answer.text, /"error"/, name)
  t.notMatch(answer.text, /127\.0\.0\.1|invalid|undici|socket|ECONN/i, `${name}: nothing of the inside`)
  if (status !== 200) t.notOk(answer.headers.location, name)
  const begun = stream && status === 200
  t.equal(await relay.spent(), begun ? beginningMicros(wire) : 0, name)
  if (row.handler !== undefined) t.equal(relay.vendor.requests.length, row.tries[stream ? 1 : 0], name)
  if (row.keepsSocket !== true) await endOf(relay)
  const metrics = await relay.metrics()
  const path = wire.name === "chat" ? "/chat/completions/" : "/vendor-a/v1/messages/"
  t.equal(sample(metrics, `tollgate_errors_total{route="${path}",error_type="${row.label}"}`), 1, name)
  t.equal(sample(metrics, "tollgate_ledger_holds"), 0, name)
  if (!begun) {
    const retries = `tollgate_upstream_retries_total{vendor="${wire.adapter}",reason="${row.reason}"}`
    t.equal(sample(metrics, retries), 1, name)
  }
}

for (const row of rows) {
  t.test(`a vendor that ${row.name}`, async t => {
    await Promise.all(columns.map(([wire, stream]) => check(t, row, wire, stream)))
  })
}

t.test("a vendor whose certificate nobody vouches for, or that speaks no TLS, is not reached", async t => {
  const vendor = await fakeVendor(t)
  const relay = await openRelay(t, undefined, { settings: { origin: vendor.origin.replace("http:", "https:") } })
  t.equal((await ask(relay.url + wires.chat.path(false), wires.chat.request(false))).status, 502)
  t.same(vendor.requests, [])
  t.equal(await relay.spent(), 0)
})

t.test("a vendor that drips for ever meets the absolute limit of the whole call", async t => {
  for (const stream of [false, true]) {
    const drip: Handler = async ({ send, socket }) => {
      await send(stream ? streamHead : headOf({ headers: { "content-length": "100000" } }))
      while (!socket.destroyed) {
        await send(stream ? chunked(": drip\n") : " ")
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    }
    const timeouts = { first_byte: "5s", idle: "5s", total: "400ms", total_stream: "400ms" }
    const relay = await openRelay(t, drip, { settings: { timeouts } })
    const answer = await ask(relay.url + wires.messages.path(stream), wires.messages.request(stream))
    t.equal(answer.status, 502)
    t.equal(await relay.spent(), 0)
    await endOf(relay)
  }
})
