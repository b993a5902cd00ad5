/** A store that is away, or loses its answers: nothing is charged twice, nothing is forgotten, a stop tells what is left. */
import t, { type Test } from "tap"
import { bill, callDetail, callHold, openLedger, priced } from "../fixtures/ledger.ts"
import { alice, life } from "../fixtures/store-contract.ts"

/** 150 of the 400 that are held; the store does not take it until its faults are cleared. */
const untakenCharge = async (t: Test) => {
  const opened = await openLedger(t)
  const hold = await opened.ledger.hold(callHold("a", 400))
  opened.faults.set("settle", "before")
  return { ...opened, settled: hold.settle(priced(150), bill) }
}

t.test(
  "a settle that the store does not take is answered within two seconds and goes on until it is durable",
  async t => {
    const { ledger, faults, clock, settled } = await untakenCharge(t)
    await clock.advance(2_100)
    t.same(await settled, { micros: 150, durable: false })
    t.match(await ledger.balance(alice), { held: 400, spent: 0 })
    faults.clear()
    await clock.advance(5_100)
    t.match(await ledger.balance(alice), { held: 0, spent: 150 })
  },
)

t.test(
  "a charge that the store does not take keeps its hold, however long that lasts, and is seen to be open",
  async t => {
    const { ledger, faults, clock, metric, settled } = await untakenCharge(t)
    await clock.advance(2_100)
    t.match(await settled, { durable: false })
    await clock.advance(2 * life)
    t.match(await ledger.balance(alice), { held: 400, available: 600 }, "nobody else spends it")
    t.equal(await metric("ledger_holds"), 1)
    t.ok((await metric("ledger_hold_age_seconds_max")) >= life / 1_000)
    faults.clear()
    await clock.advance(5_100)
    t.match(await ledger.balance(alice), { held: 0, spent: 150 })
    t.equal(await metric("ledger_holds"), 0)
  },
)

t.test("a settle whose answer was lost charges once", async t => {
  const { ledger, faults, clock } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  faults.set("settle", "after")
  const settled = hold.settle(priced(150), bill)
  await clock.advance(1_000)
  faults.clear()
  await clock.advance(5_100)
  t.match(await settled, { micros: 150 })
  t.match(await ledger.balance(alice), { available: 850, spent: 150 })
})

t.test("a clock that is set back delays neither the next try nor the answer of who waits", async t => {
  const { ledger, faults, clock, settled } = await untakenCharge(t)
  clock.set(-3_600_000)
  await clock.advance(2_100)
  t.match(await Promise.race([settled, "nothing yet"]), { durable: false })
  faults.clear()
  await clock.advance(5_100)
  t.match(await ledger.balance(alice), { spent: 150, held: 0 })
})

t.test("stopping waits for what is not durable yet", async t => {
  const { ledger, faults, clock } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  faults.set("release", "before")
  const released = hold.release()
  await clock.advance(3_000)
  await released
  let stopped = false
  const stop = ledger.stop(60_000).then(() => {
    stopped = true
  })
  await clock.advance(10_000)
  t.notOk(stopped)
  faults.clear()
  await clock.advance(5_100)
  await stop
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
})

t.test("stopping tells that it waits, then what was never confirmed, each with its id, member and micros", async t => {
  const { ledger, faults, clock, lines, fields } = await openLedger(t)
  const charged = await ledger.hold(callHold("charged", 400))
  const released = await ledger.hold(callHold("released", 300))
  faults.set("hold", "after")
  faults.set("settle", "before")
  faults.set("release", "before")
  const doubtful = t.rejects(ledger.hold(callHold("doubtful", 200)))
  const ends = [charged.settle(priced(150), bill), released.release(), doubtful]
  await clock.advance(3_000)
  await Promise.all(ends)
  let left: number | undefined
  const stopping = ledger.stop(7_000).then(count => {
    left = count
  })
  await clock.advance(900)
  t.same(lines, [])
  await clock.advance(100)
  t.same(lines, ["waiting for the store, which has not taken these yet"])
  t.match(fields, [{ charges: 1, releases: 2 }])
  await clock.advance(5_999)
  t.equal(left, undefined)
  await clock.advance(1)
  await stopping
  t.equal(left, 3)
  const detail = { ...callDetail, key: "key-1", priceDigest: priced(150).digest, ...bill }
  t.same(fields.slice(1), [
    { unconfirmed: "charge", id: "charged", ...alice, micros: 150, detail },
    { unconfirmed: "release", id: "released", ...alice, micros: 300 },
    { unconfirmed: "release", id: "doubtful", ...alice, micros: 200 },
  ])
  t.match(lines.slice(1), [/has not confirmed a charge/, /has not confirmed a release/, /has not confirmed a release/])
  faults.clear()
  await clock.advance(60_000)
  t.match(await ledger.balance(alice), { held: 900, spent: 0 }, "and nothing is tried any more")
})

t.test("stopping tries at once what would have been tried later, and tells nothing when that goes well", async t => {
  const { ledger, faults, clock, lines, settled } = await untakenCharge(t)
  await clock.advance(30_100)
  await settled
  faults.clear()
  const stopping = ledger.stop(7_000)
  await clock.advance(200)
  t.equal(await stopping, 0)
  await clock.advance(2_000)
  t.same(lines, [], "nor later")
  t.match(await ledger.balance(alice), { held: 0, spent: 150 })
})

t.test("while it stops it tries often, however rare its tries had become", async t => {
  const { ledger, faults, clock, settled } = await untakenCharge(t)
  await clock.advance(30_100)
  await settled
  const stopping = ledger.stop(7_000)
  await clock.advance(1_000)
  faults.clear()
  await clock.advance(1_700)
  t.match(await ledger.balance(alice), { held: 0, spent: 150 })
  t.equal(await stopping, 0)
})

t.test("however long the store was away, it has the charge five seconds after it is back", async t => {
  const { ledger, faults, clock, settled } = await untakenCharge(t)
  await clock.advance(600_000)
  await settled
  faults.clear()
  await clock.advance(5_100)
  t.match(await ledger.balance(alice), { held: 0, spent: 150 })
})

t.test("what the store has not answered yet is not asked again beside it, not even by a stop", async t => {
  const { ledger, faults, tries, clock, settled } = await untakenCharge(t)
  await clock.advance(50)
  const answer = Promise.withResolvers<void>()
  faults.set("settle", answer.promise)
  await clock.advance(10_000)
  t.equal(tries("settle"), 2)
  t.match(await settled, { durable: false })
  const stopping = ledger.stop(7_000)
  await clock.advance(1_000)
  t.equal(tries("settle"), 2)
  answer.resolve()
  t.equal(await stopping, 0)
})

t.test("a hold whose answer was lost is given back, and its call fails with 503", async t => {
  const { ledger, faults, clock } = await openLedger(t)
  faults.set("hold", "after")
  await t.rejects(ledger.hold(callHold("a", 400)), { code: "store_unavailable" })
  await clock.advance(200)
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
  t.equal(ledger.activeHolds(), 0)
})

t.test("a price that is no amount is logged and never retried", async t => {
  const { ledger, lines, clock } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  t.match(await hold.settle(priced(Number.NaN), bill), { durable: false })
  t.same(lines, ["a charge or release failed for good: it is not tried again"])
  await clock.advance(2 * life)
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
})
