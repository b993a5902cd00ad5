/** Holds of running calls live on; those of the dead lapse. */
import t from "tap"
import { bill, callHold, openLedger, priced } from "../fixtures/ledger.ts"
import { alice, life } from "../fixtures/store-contract.ts"

t.test("the hold of a long call is renewed as long as it runs", async t => {
  const { ledger, clock, metric } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  await clock.advance(12 * life)
  t.match(await ledger.balance(alice), { held: 400 })
  t.equal(await metric("ledger_holds"), 1)
  t.ok((await metric("ledger_hold_age_seconds_max")) >= (11 * life) / 1_000)
  t.match(await hold.settle(priced(100), bill), { micros: 100, durable: true })
  t.equal(await metric("ledger_holds"), 0)
  t.equal(await metric("ledger_hold_age_seconds_max"), 0)
  t.equal(await metric("ledger_lapsed_total"), 0)
})

t.test("four beats in a row may fail: no other replica finds the hold past its life", async t => {
  const { ledger, clock, faults, store } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  faults.set("renew", "before")
  await clock.advance((4 * life) / 5)
  faults.clear()
  await clock.advance(life / 5)
  await clock.advance(1_000)
  t.equal(await store.accounts.sweep(), 0)
  t.match(await ledger.balance(alice), { held: 400 })
  await hold.release()
})

t.test("every hold of a crowd is renewed", async t => {
  const crowd = 1_100
  const { ledger, clock, lines } = await openLedger(t, { granted: crowd })
  const holds = await Promise.all(Array.from({ length: crowd }, (_, at) => ledger.hold(callHold(`call-${at}`, 1))))
  await clock.advance(2 * life)
  t.match(await ledger.balance(alice), { held: crowd })
  t.same(lines, [])
  await Promise.all(holds.map(hold => hold.release()))
})

t.test("a store that is slow to renew is not asked again before it answered", async t => {
  const { ledger, clock, faults, tries } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  const answer = Promise.withResolvers<void>()
  faults.set("renew", answer.promise)
  await clock.advance((3 * life) / 5)
  t.equal(tries("renew"), 1)
  answer.resolve()
  await clock.advance(life / 5)
  t.equal(tries("renew"), 2)
  await hold.release()
})

t.test("after a stop nothing is renewed any more", async t => {
  const { ledger, clock, tries } = await openLedger(t)
  await ledger.hold(callHold("a", 400))
  await clock.advance(life / 5)
  await ledger.stop(1_000)
  const before = tries("renew")
  await clock.advance(life)
  t.equal(tries("renew"), before)
})

t.test("a call that ends while its hold is renewed did not lose it", async t => {
  const { ledger, clock, faults, lines } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  const reached = Promise.withResolvers<void>()
  faults.set("renew", reached.promise)
  await clock.advance(life / 5)
  await hold.settle(priced(100), bill)
  reached.resolve()
  await clock.advance(life / 5)
  t.same(lines, [])
})

t.test("a hold that could not be renewed lapses; its call still pays, once, from what is available", async t => {
  const { ledger, clock, faults, store } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  faults.set("renew", "before")
  await clock.advance(life)
  t.match(await ledger.balance(alice), { held: 400 }, "who cannot renew does not sweep either")
  t.equal(await store.accounts.sweep(), 1, "but another replica does")
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
  t.match(await hold.settle(priced(100), bill), { micros: 100 })
  t.match(await ledger.balance(alice), { available: 900, spent: 100 })
})

t.test("a lapsed hold is counted and told, and its settle charges once", async t => {
  const { ledger, clock, lines, metric, store } = await openLedger(t)
  const hold = await ledger.hold(callHold("a", 400))
  await store.accounts.release("a", alice) // as a sweeper of another replica does
  await store.accounts.hold({ id: "dead", member: alice, micros: 5, least: 5 }) // of a process that died
  await clock.advance(2 * life)
  t.same(lines, ["a hold lapsed while its call was running"])
  t.equal(await metric("ledger_lapsed_total"), 1)
  t.match(await hold.settle(priced(100), bill), { micros: 100, durable: true })
  t.match(await ledger.balance(alice), { available: 900, held: 0, spent: 100 })
})

t.test("what the dead held lapses when a gateway starts, not only when it has lived for a while", async t => {
  const { ledger, clock, metric } = await openLedger(t, {
    before: async (store, clock) => {
      await store.accounts.grant("earlier", alice, 10, "gift")
      await store.accounts.hold({ id: "dead", member: alice, micros: 5, least: 5 })
      await clock.advance(life + 1)
    },
  })
  await clock.advance(0)
  t.equal(await metric("ledger_lapsed_total"), 1)
  t.match(await ledger.balance(alice), { available: 1_010, held: 0 })
})
