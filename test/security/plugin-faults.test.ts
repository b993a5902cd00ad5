/** A plugin that throws or hangs ends its own call with 500, gives its hold back, is counted, and disturbs nobody else. */
import t from "tap"
import type { AnyPlugin } from "../../core/loader.ts"
import type { Call, Outcome, Route, Watcher } from "../../core/plugin.ts"
import { testClock } from "../../core/testing.ts"
import { ask, postHead, type RawClient, rawClient } from "../fixtures/client.ts"
import { publicEndpoint } from "../fixtures/endpoints.ts"
import { until } from "../fixtures/until.ts"
import { answering, type Handler, streaming } from "../fixtures/vendor.ts"
import { goodMicros, openRelay, sample, wires } from "../fixtures/wires.ts"

type Run = (call: Call, next: () => Promise<Outcome>) => Promise<Outcome>

/** Bad only for calls that say so. */
const bad = (run: Run): AnyPlugin => ({
  name: "bad",
  api: 1,
  setup: host => host.use({ run: (call, next) => (call.headers["x-bad"] === undefined ? next() : run(call, next)) }),
})

const wire = wires.messages
/** So many failures in a row rest a secret. */
const breakerOpensAfter = 5

/** Those that rose: every plugin's series stands at zero from the start. */
const samplesOf = (metrics: string, name: string): readonly string[] =>
  metrics
    .split("\n")
    .flatMap(line => (line.startsWith(`${name}{`) && !line.endsWith("} 0") ? [line.slice(name.length)] : []))

const marked = { headers: { "x-bad": "1" } }
const boom = (): never => {
  throw new Error("boom canary")
}

const throwing: Readonly<Record<string, Run>> = {
  "throws before next()": () => boom(),
  "rejects before next()": async () => boom(),
  "calls next() twice": async (_, next) => {
    const first = next()
    return (await next()) && first
  },
  "throws what is no error": () => Promise.reject("text"),
  "rejects with nothing": () => Promise.reject(undefined),
  "names a field that no head can carry": (call, next) => {
    call.header("x-note", "世界")
    return next()
  },
  "throws after next()": async (_, next) => {
    await next()
    return boom()
  },
  "returns nothing": async (_, next) => void (await next()) as never,
}

/** The vendor answered these before the step failed: the call is charged, and its answer was sent. */
const answered = new Set(["throws after next()", "returns nothing"])

for (const [name, run] of Object.entries(throwing)) {
  t.test(`a step that ${name}`, async t => {
    const relay = await openRelay(t, answering({ body: wire.whole }), { plugins: [bad(run)] })
    const [answer, other] = await Promise.all([
      ask(relay.url + wire.path(false), wire.request(false), marked),
      ask(relay.url + wire.path(false), wire.request(false)),
    ])
    t.equal(answer.status, answered.has(name) ? 200 : 500)
    if (!answered.has(name)) t.notMatch(answer.text, /boom|bad|at /)
    t.equal(other.status, 200)
    await relay.spent()
    t.equal((await relay.balance()).held, 0)
    t.same(samplesOf(await relay.metrics(), "tollgate_plugin_errors_total"), ['{plugin="bad"} 1'])
  })
}

t.test("a step that lets another's error pass is not blamed for it", async t => {
  const outer: AnyPlugin = { name: "outer", api: 1, setup: host => host.use({ run: async (_, next) => await next() }) }
  const relay = await openRelay(t, answering({ body: wire.whole }), { plugins: [outer, bad(async () => boom())] })
  t.equal((await ask(relay.url + wire.path(false), wire.request(false), marked)).status, 500)
  await relay.spent()
  t.same(samplesOf(await relay.metrics(), "tollgate_plugin_errors_total"), ['{plugin="bad"} 1'])
})

const watchers: Readonly<Record<string, Watcher>> = { head: { head: boom }, data: { data: boom }, end: { end: boom } }

for (const [place, watcher] of Object.entries(watchers)) {
  t.test(`a watcher that throws at ${place} ends its call, and no vendor is blamed or asked again`, async t => {
    for (const stream of [false, true]) {
      const handler = stream ? streaming(wire.events.join("")) : answering({ body: wire.whole })
      const run: Run = (call, next) => {
        call.watch(watcher)
        return next()
      }
      const relay = await openRelay(t, handler, { plugins: [bad(run)] })
      for (let times = 0; times < breakerOpensAfter; times += 1) {
        const answer = await ask(relay.url + wire.path(stream), wire.request(stream), marked)
        t.equal(answer.status, stream && place === "end" ? 200 : 500)
        t.notMatch(answer.text, "boom")
      }
      t.equal((await ask(relay.url + wire.path(stream), wire.request(stream))).status, 200, "others go on")
      t.equal(relay.vendor.requests.length, breakerOpensAfter + 1)
      await relay.spent()
      const metrics = await relay.metrics()
      t.same(samplesOf(metrics, "tollgate_plugin_errors_total"), [`{plugin="bad"} ${breakerOpensAfter}`])
      t.equal(sample(metrics, `tollgate_upstream_breaker_state{vendor="anthropic",secret="main"}`), 0)
    }
  })
}

t.test("a watcher that writes into what it is shown changes nothing for client or bill", async t => {
  for (const stream of [false, true]) {
    const run: Run = (call, next) => {
      call.watch({ data: chunk => void chunk.fill("x") })
      return next()
    }
    const sent = stream ? wire.events.join("") : wire.whole
    const relay = await openRelay(t, stream ? streaming(sent) : answering({ body: sent }), { plugins: [bad(run)] })
    t.equal((await ask(relay.url + wire.path(stream), wire.request(stream), marked)).text, sent)
    t.equal(await relay.spent(), goodMicros)
  }
})

t.test("a billing step whose settle throws takes no answer away, and its hold is free again", async t => {
  const billing: AnyPlugin = {
    name: "billing",
    api: 1,
    setup: host =>
      host.use({
        needs: ["principal"],
        provides: ["quote"],
        on: route => route.charge !== "none",
        async run(call, next) {
          const principal = call.get("principal")
          const detail = { model: "claude", kind: "llm", route: "x" }
          const hold = await host.ledger.hold({ id: call.id, principal, micros: 1_000, least: 1, detail })
          call.onBill({ settle: async () => boom(), release: () => hold.release() })
          return next()
        },
      }),
  }
  for (const stream of [false, true]) {
    const handler = stream ? streaming(wire.events.join("")) : answering({ body: wire.whole })
    const relay = await openRelay(t, handler, {
      plugins: [billing],
      gateway: { plugins: ["metrics", "access-log", "body-size", "auth", "model"] },
    })
    const answer = await ask(relay.url + wire.path(stream), wire.request(stream))
    t.match(answer, { status: 200, end: "whole", text: stream ? wire.events.join("") : wire.whole })
    t.equal(await relay.spent(), 0)
    t.equal(sample(await relay.metrics(), "tollgate_ledger_holds"), 0)
  }
})

t.test("a release that throws when nobody waits any more is counted for its step", async t => {
  const billing: AnyPlugin = {
    name: "billing",
    api: 1,
    setup: host =>
      host.use({
        provides: ["quote"],
        on: route => route.charge !== "none",
        run(call, next) {
          call.onBill({ settle: async () => boom(), release: async () => boom() })
          return next()
        },
      }),
  }
  const gate = Promise.withResolvers<void>()
  const failing: Handler = async exchange => {
    await gate.promise
    await answering({ status: 500, body: "{}" })(exchange)
  }
  const relay = await openRelay(t, failing, {
    plugins: [billing],
    gateway: { plugins: ["metrics", "access-log", "body-size", "auth", "model"] },
  })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wire.request(false))
  client.write(
    postHead(new URL(relay.url + wire.path(false)).pathname, [`content-length: ${Buffer.byteLength(body)}`]) + body,
  )
  await until(() => relay.vendor.requests.length === 1)
  client.socket.destroy()
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
  gate.resolve()
  await until(async () => samplesOf(await relay.metrics(), "tollgate_plugin_errors_total").length > 0)
  t.same(samplesOf(await relay.metrics(), "tollgate_plugin_errors_total"), ['{plugin="billing"} 1'])
})

t.test("a step that hangs ends its call after its time, by the clock; what it does later begins nothing", async t => {
  const clock = testClock()
  const gate = Promise.withResolvers<void>()
  const run: Run = async (_, next) => {
    await gate.promise
    return next()
  }
  const relay = await openRelay(t, answering({ body: wire.whole }), { plugins: [bad(run)], clock })
  const hanging = ask(relay.url + wire.path(false), wire.request(false), marked)
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 1)
  t.equal((await ask(relay.url + wire.path(false), wire.request(false))).status, 200, "others go on")
  await clock.advance(10_500)
  t.equal((await hanging).status, 500)
  t.equal((await relay.balance()).held, 0)
  gate.resolve()
  t.equal(await relay.spent(), goodMicros, "the other call's")
  t.equal(relay.vendor.requests.length, 1)
  const metrics = await relay.metrics()
  t.equal(sample(metrics, 'tollgate_plugin_errors_total{plugin="bad"}'), 1)
  t.equal(sample(metrics, "tollgate_requests_in_flight"), 0)
  t.match(metrics, /^tollgate_http_requests_total\{.*status="500"\} 1$/m)
  t.match(
    relay.lines.find(({ msg, status }) => msg === "call" && status === 500),
    { outcome: "rejected", code: "plugin_failed" },
  )
})

const badHandlers: Readonly<Record<string, Route["handle"]>> = {
  hangs: () => new Promise(() => {}),
  "returns nothing": async () => undefined as never,
}

for (const [name, handle] of Object.entries(badHandlers)) {
  t.test(`a route's handler that ${name} ends its call, which is counted and logged as every other`, async t => {
    const clock = testClock()
    const relay = await openRelay(t, undefined, { plugins: [publicEndpoint("bad", handle)], clock })
    const failing = ask(`${relay.url}/bad/`, {})
    await until(() => relay.lines.some(({ msg }) => msg === "call") || clock.advance(1_000).then(() => false))
    t.equal((await failing).status, 500)
    const metrics = await relay.metrics()
    t.equal(sample(metrics, 'tollgate_http_requests_total{route="/bad/",method="POST",status="500"}'), 1)
    t.equal(sample(metrics, 'tollgate_errors_total{route="/bad/",error_type="gateway_internal"}'), 1)
    t.equal(sample(metrics, "tollgate_requests_in_flight"), 0)
    t.same(samplesOf(metrics, "tollgate_plugin_errors_total"), ['{plugin="bad"} 1'])
  })
}

t.test("a vendor may think longer than a step may: its time is not the step's", async t => {
  const clock = testClock()
  const gate = Promise.withResolvers<void>()
  const slowly: Handler = async exchange => {
    await gate.promise
    await answering({ body: wire.whole })(exchange)
  }
  const relay = await openRelay(t, slowly, { clock })
  const thinking = ask(relay.url + wire.path(false), wire.request(false))
  await relay.vendor.next()
  await clock.advance(15_000)
  gate.resolve()
  t.equal((await thinking).status, 200)
  t.equal(await relay.spent(), goodMicros)
})

t.test("steps that hang one around the other, before or after next(), end the call all the same", async t => {
  const clock = testClock()
  const never = new Promise<never>(() => {})
  const clings: AnyPlugin = {
    name: "clings",
    api: 1,
    setup: host => host.use({ run: (_, next) => next().catch(() => never) }),
  }
  const relay = await openRelay(t, answering({ body: wire.whole }), { plugins: [clings, bad(() => never)], clock })
  const hanging = ask(relay.url + wire.path(false), wire.request(false), marked)
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 1)
  await clock.advance(30_500)
  t.equal((await hanging).status, 500)
  t.same(samplesOf(await relay.metrics(), "tollgate_plugin_errors_total").length, 1)
})

for (const [name, finish] of [
  ["comes whole", (client: RawClient) => client.write("x".repeat(1_000_000))],
  ["breaks off", (client: RawClient) => client.socket.resetAndDestroy()],
] as const) {
  t.test(`a body that a failed call no longer waits for takes no memory, and ${name} without harm`, async t => {
    const failing = Promise.withResolvers<never>()
    const checked = publicEndpoint("checked", call =>
      Promise.all([call.body(), failing.promise]).then(() => call.reply(200, "")),
    )
    const relay = await openRelay(t, undefined, { plugins: [checked] })
    const memory = async (): Promise<number> => sample(await relay.metrics(), "tollgate_body_bytes_in_flight")
    const client = await rawClient(t, relay.url)
    client.write(postHead("/v1/gateway/checked/", ["content-length: 2000000"]) + "x".repeat(1_000_000))
    await until(async () => (await memory()) >= 1_000_000)
    failing.reject(new Error("boom canary"))
    await client.until("500 ")
    t.equal(await memory(), 0)
    finish(client)
    client.socket.end()
    await client.closed
    t.equal(await memory(), 0)
  })
}
