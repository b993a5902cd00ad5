/** What metrics say of a call that went another way than most: each attempt, stream and alarm once, no time of a vendor's as ours. */
import t, { type Test } from "tap"
import { type TestGateway, testGateway } from "../../core/testing.ts"
import { ask, postHead, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, fakeVendor, type Handler, streaming } from "../fixtures/vendor.ts"
import { halting, openRelay, type Relay, sample, type Wire, wires } from "../fixtures/wires.ts"

const path = "/vendor-a/v1/messages/"
const forEver: Promise<never> = new Promise(() => {})

/** Lets so much time pass that clocks of any resolution see it; how much it was, in seconds. */
const someTime = async (): Promise<number> => {
  const began = performance.now()
  await until(() => performance.now() - began > 50)
  return (performance.now() - began) / 1000
}

/** Of the request's time, what was counted as waiting for the vendor, in seconds. */
const waited = async (relay: Relay, statusClass: string): Promise<number> => {
  const metrics = await relay.metrics()
  const labels = `route="${path}",status_class="${statusClass}"`
  const total = sample(metrics, `tollgate_http_request_duration_seconds_sum{${labels}}`)
  return total - sample(metrics, `tollgate_overhead_seconds_sum{route="${path}"}`)
}

t.test("the time between the pieces of a stream is its vendor's, not overhead", async t => {
  const gate = Promise.withResolvers<void>()
  const relay = await openRelay(t, halting(wires.messages, gate.promise))
  const answer = ask(relay.url + path, wires.messages.request(true))
  await until(async () => (await relay.metrics()).includes("tollgate_stream_first_token_seconds_count"))
  const silent = await someTime()
  gate.resolve()
  t.match(await answer, { status: 200, end: "whole" })
  await relay.spent()
  const first = 'tollgate_stream_first_token_seconds_sum{vendor="anthropic",model="claude"}'
  t.ok((await waited(relay, "2xx")) >= sample(await relay.metrics(), first) + silent)
})

const leaving = async (t: Test, relay: Relay, wire: Wire): Promise<number> => {
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wire.request(false))
  client.write(postHead(`/v1/gateway${path}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
  await relay.vendor.next()
  const silent = await someTime()
  client.socket.destroy()
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
  return silent
}

t.test("a client that leaves before its vendor's head waited for that vendor", async t => {
  const relay = await openRelay(t, () => forEver, { settings: { on_client_abort: "cancel" } })
  const silent = await leaving(t, relay, wires.messages)
  t.ok((await waited(relay, "4xx")) >= silent)
})

t.test("an attempt that a stop cut off is counted", async t => {
  const relay = await openRelay(t, () => forEver, { gateway: { shutdown: "20ms" } })
  const answer = ask(relay.url + path, wires.messages.request(false))
  await relay.vendor.next()
  await relay.gateway.stop()
  t.equal((await answer).status, 503)
  const metrics = await relay.gateway.parts.metrics.render()
  const attempts = 'tollgate_upstream_requests_total{vendor="anthropic",model="claude",outcome="draining"}'
  t.equal(sample(metrics, attempts), 1)
  t.equal(sample(metrics, 'tollgate_upstream_duration_seconds_count{vendor="anthropic",operation="llm"}'), 1)
})

t.test("a request that is changed and sent again is a retry", async t => {
  const refusal = { message: "reasoning_effort is not supported with tools", param: "reasoning_effort" }
  const body = JSON.stringify({ error: { ...refusal, type: "invalid_request_error" } })
  const relay = await openRelay(t, exchange =>
    answering(relay.vendor.requests.length === 1 ? { status: 400, body } : { body: wires.chat.whole })(exchange),
  )
  const tools = [{ type: "function", function: { name: "f" } }]
  const request = { ...wires.chat.request(false), reasoning_effort: "low", tools }
  t.equal((await ask(relay.url + wires.chat.path(false), request)).status, 200)
  t.equal(relay.vendor.requests.length, 2)
  const metrics = await relay.metrics()
  t.equal(sample(metrics, 'tollgate_upstream_retries_total{vendor="openai",reason="invalid"}'), 1)
})

t.test("a stream that its vendor refuses ended as refused, by the kind of its fault", async t => {
  const wire = wires.messages
  for (const handler of [streaming(wire.overload.event), answering({ status: 529, body: "{}" })]) {
    const relay = await openRelay(t, handler)
    t.equal((await ask(relay.url + path, wire.request(true))).status, 529)
    const metrics = await relay.metrics()
    t.equal(sample(metrics, 'tollgate_streams_ended_total{vendor="anthropic",how="refused"}'), 1)
    t.equal(sample(metrics, `tollgate_errors_total{route="${path}",error_type="vendor_overloaded"}`), 1)
    t.notOk(metrics.includes('error_type="vendor_5xx"'))
  }
})

/** A gateway in front of one vendor. */
const openWith = async (t: Test, handler: Handler, adapter: string, more: object): Promise<TestGateway> => {
  const { origin } = await fakeVendor(t, handler)
  const vendors = { [adapter]: { adapter, origin, secrets: [{ env: "VENDOR_KEY" }] } }
  const { catalog = { models: {} }, ...gateway } = more as { catalog?: Readonly<Record<string, unknown>> }
  const env = { VENDOR_KEY: "secret-of-the-vendor" }
  const opened = await testGateway({ env, catalog, gateway: { sandbox: false, vendors, ...gateway } })
  t.teardown(() => opened.close())
  return opened
}

const errorsIn = (metrics: string): readonly string[] =>
  metrics.split("\n").filter(line => /^tollgate_errors_total\{.* [1-9]/.test(line))

t.test("what was not modified is no error", async t => {
  const plugins = ["metrics", "auth", "model", "pricing", { proxy: { path: "/tools/x/", vendor: "http" } }]
  const gateway = await openWith(t, answering({ status: 304 }), "http", { plugins })
  t.equal((await gateway.call("/tools/x/a", undefined, { headers: { "if-none-match": '"1"' } })).status, 304)
  t.same(errorsIn(await gateway.metrics()), [])
})

t.test("an answer without usage raises its alarm once, also where the vendor should have told its cost", async t => {
  const message = { role: "assistant", content: "Hello there" }
  const body = JSON.stringify({ object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }] })
  const model = { type: "llm", targets: [{ vendor: "openai", model: "x" }], price: { vendor_cost: "1000 per dollar" } }
  const gateway = await openWith(t, answering({ body }), "openai", { catalog: { models: { m: model } } })
  const request = { model: "m", messages: [{ role: "user", content: "hi" }] }
  t.equal((await gateway.call("/chat/completions/", request)).status, 200)
  t.equal(sample(await gateway.metrics(), 'tollgate_usage_missing_total{vendor="openai",model="m"}'), 1)
})
