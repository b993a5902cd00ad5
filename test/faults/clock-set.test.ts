/** The wall's clock is set while the gateway works: what lasts goes on, and only dates follow. */
import t, { type Test } from "tap"
import { testClock } from "../../core/testing.ts"
import { ask, postHead, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, type Handler } from "../fixtures/vendor.ts"
import { goodMicros, halting, openRelay, type RelayOptions, wires } from "../fixtures/wires.ts"

const hour = 3_600_000
const day = 24 * hour
const wire = wires.messages

const open = async (t: Test, handler: Handler, more: RelayOptions = {}) => {
  const clock = testClock(Date.UTC(2026, 2, 9, 3)) // noon in Seoul
  return { clock, relay: await openRelay(t, handler, { clock, ...more }) }
}

for (const [name, by, date] of [
  ["back by a day", -day, "2026-03-08"],
  ["forward by a day", day, "2026-03-10"],
] as const) {
  t.test(`set ${name}, a stream goes on and is charged once, on the day that it is now`, async t => {
    const gate = Promise.withResolvers<void>()
    const { clock, relay } = await open(t, halting(wire, gate.promise))
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify(wire.request(true))
    const fields = [`content-length: ${Buffer.byteLength(body)}`, "connection: close"]
    client.write(`${postHead(`/v1/gateway${wire.path(true)}`, fields)}${body}`)
    await client.until("Gr")
    clock.set(by)
    await clock.advance(70_000) // deadlines were looked at, holds renewed and swept
    t.ok((await relay.balance()).held > 0)
    gate.resolve()
    t.match(await client.closed, "message_stop")
    t.equal(await relay.spent(), goodMicros)
    const { usage } = relay.gateway.parts.store
    const member = { organisation: "acme", member: "alice" }
    t.match(await usage.query({ member, from: "2026-03-01", to: "2026-03-31", by: "day" }), [
      { name: date, requests: 1, micros: goodMicros },
    ])
    t.notMatch(await relay.metrics(), /tollgate_ledger_lapsed_total [1-9]/)
  })
}

t.test("set back, a vendor that says nothing is given up in time all the same, and costs nothing", async t => {
  const { clock, relay } = await open(t, () => {}, { settings: { timeouts: { first_byte: "5s" } } })
  const asked = ask(relay.url + wire.path(false), wire.request(false))
  let over = false
  void asked.then(() => {
    over = true
  })
  await until(() => relay.vendor.requests.length === 1)
  clock.set(-day)
  await until(async () => {
    await clock.advance(1_000)
    return over
  })
  t.equal((await asked).status, 502)
  t.equal(await relay.spent(), 0)
})

t.test("set back or forward, a member has its limit, no less and no more", async t => {
  const limited = ["auth", { "rate-limit": { common: { requests: 2, window: "60s" } } }, "model", "pricing"]
  const { clock, relay } = await open(t, answering({ body: wire.whole }), { gateway: { plugins: limited } })
  const call = () => relay.call("/credits/")
  for (const by of [-hour, day]) {
    t.equal((await call()).status, 200)
    t.equal((await call()).status, 200)
    clock.set(by)
    const refused = await call()
    t.equal(refused.status, 429)
    t.equal(refused.headers.get("retry-after"), "60")
    await clock.advance(60_000)
    t.equal((await call()).status, 200, "the promised time passes")
    await clock.advance(60_000)
  }
})
