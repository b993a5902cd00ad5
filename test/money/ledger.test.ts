import t from "tap"
import { bill, callDetail, callHold, openLedger, priced } from "../fixtures/ledger.ts"
import { alice } from "../fixtures/store-contract.ts"

t.test("a hold is settled by real usage, with key, price digest and usage in its row", async t => {
  const { ledger, store } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  t.equal(hold.micros, 400)
  t.equal(ledger.activeHolds(), 1)
  t.same(await hold.settle(priced(150), bill), { micros: 150, durable: true })
  t.equal(ledger.activeHolds(), 0)
  t.same(await ledger.balance(alice), { granted: 1_000, available: 850, held: 0, spent: 150 })
  const [row] = await store.accounts.entries(alice, { after: 1, limit: 1 })
  t.same(row?.detail, { ...callDetail, key: "key-1", priceDigest: "0123456789ab", ...bill })
})

t.test("a balance that does not reach is 402, too many holds are 429 with code 6005 and no retry-after", async t => {
  const { ledger } = await openLedger(t)
  await t.rejects(ledger.hold(callHold("a", 1_001)), { code: "credits_exhausted", message: "Credit balance exhausted" })
  const reservations = { requests: 1, windowMs: 60_000 }
  const hold = await ledger.hold(callHold("b", 1, { reservations }))
  const message = "Too many reservation requests. Please try again later."
  await t.rejects(ledger.hold(callHold("c", 1, { reservations })), {
    code: "reservations_exceeded",
    detail: { code: 6005, message },
    headers: {},
  })
  await hold.release()
  t.match(await ledger.balance(alice), { available: 1_000 })
})

t.test("what is charged is what was really taken", async t => {
  const { ledger, metric } = await openLedger(t, { granted: 3_000_000 })
  const hold = await ledger.hold(callHold("a", 2_000_000))
  t.same(await hold.settle(priced(5_000_000), bill), { micros: 3_000_000, durable: true })
  t.equal(await metric('credits_total{kind="settled",model="some-model"}'), 3)
  t.equal(await metric('credits_total{kind="shortfall",model="some-model"}'), 2)
  t.equal(await metric('credits_total{kind="held",model="some-model"}'), 2)
  t.equal(await metric('credits_total{kind="released",model="some-model"}'), 0)
})

t.test("what comes back of a hold is counted as released: the rest that was not used, or all of it", async t => {
  const { ledger, metric } = await openLedger(t, { granted: 5_000_000 })
  const used = await ledger.hold(callHold("used", 3_000_000))
  await used.settle(priced(1_000_000), bill)
  t.equal(await metric('credits_total{kind="released",model="some-model"}'), 2)
  const unused = await ledger.hold(callHold("unused", 3_000_000))
  await unused.release()
  t.equal(await metric('credits_total{kind="released",model="some-model"}'), 5)
  t.equal(ledger.activeHolds(), 0)
})

t.test("the first end counts: a hold that was settled is not released, and the other way round", async t => {
  const { ledger } = await openLedger(t)
  const one = await ledger.hold(callHold("a", 100))
  const ends = await Promise.all([one.settle(priced(60), bill), one.settle(priced(90), bill), one.release()])
  t.same(ends.slice(0, 2), [
    { micros: 60, durable: true },
    { micros: 60, durable: true },
  ])
  const other = await ledger.hold(callHold("b", 100))
  await other.release()
  t.match(await other.settle(priced(60), bill), { micros: 0 })
  t.match(await ledger.balance(alice), { available: 940, spent: 60, held: 0 })
})

t.test("a refund is given once and counted", async t => {
  const { ledger, metric } = await openLedger(t, { granted: 5_000_000 })
  const hold = await ledger.hold(callHold("a", 2_000_000))
  await hold.settle(priced(2_000_000), bill)
  t.equal(await ledger.refund("a", alice, "failed"), 2_000_000)
  t.equal(await ledger.refund("a", alice, "failed"), 0)
  t.equal(await ledger.refund("b", alice, "failed"), undefined)
  t.equal(await metric('credits_total{kind="refunded",model="other"}'), 2)
})

t.test("usage with quantities that are none is durable without them", async t => {
  const { ledger, store } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  const usage = { input: 10, output: Number.NaN, seconds: Number.POSITIVE_INFINITY, images: -1 }
  t.same(await hold.settle(priced(150), { usage, source: "counted" }), { micros: 150, durable: true })
  const [row] = await store.accounts.entries(alice, { after: 1, limit: 1 })
  t.same(row?.detail?.usage, { input: 10 })
})
