import { type Test, t } from "tap"
import { checkLedger } from "../../core/money/check.ts"
import { createLedger } from "../../core/money/ledger.ts"
import { type TestClock, testClock } from "../../core/observe/clock.ts"
import { createMetrics } from "../../core/observe/metrics.ts"
import type { Priced } from "../../core/offer.ts"
import type { HoldOptions, Log, Principal } from "../../core/plugin.ts"
import { storeUnavailable } from "../../core/state/failure.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Accounts, Store } from "../../core/state/store.ts"
import { alice, dayOf, life } from "../fixtures/store-contract.ts"

const principal: Principal = {
  ...alice,
  key: "key-1",
  identity: {
    key: { ...alice, id: "key-1", name: "", state: "valid", createdAt: 0 },
    organisation: { name: "acme", title: "", gateway: true, models: "all", disabled: [] },
  },
}

const detail = { model: "some-model", kind: "llm", route: "/chat/completions/" }
const holdOf = (id: string, micros: number, more: Partial<HoldOptions> = {}): HoldOptions => ({
  id,
  principal,
  micros,
  least: micros,
  detail,
  ...more,
})
const priced = (micros: number): Priced => ({ micros, bound: "exact", lines: [], unpriced: [], digest: "0123456789ab" })
const bill = { usage: { input: 10, output: 5 }, source: "vendor" } as const

type Verb = "hold" | "settle" | "release" | "renew" | "sweep"
type Fault = "before" | "after"

/** The store, with verbs that fail before they do anything, or after they did it: a lost answer. */
const faulty = (store: Store) => {
  const faults = new Map<Verb, Fault>()
  const accounts = new Proxy(store.accounts, {
    get(target, name) {
      const verb = Reflect.get(target, name) as (...words: unknown[]) => unknown
      if (typeof verb !== "function") return verb
      return async (...words: unknown[]) => {
        const fault = faults.get(name as Verb)
        if (fault === "before") throw storeUnavailable(new Error("away"))
        const answer = await verb.apply(target, words)
        if (fault === "after") throw storeUnavailable(new Error("the answer was lost"))
        return answer
      }
    },
  }) satisfies Accounts
  return { faults, store: { ...store, accounts } }
}

interface Before {
  readonly granted?: number
  /** What happened in the store before this gateway started. */
  readonly before?: (store: Store, clock: TestClock) => Promise<unknown>
}

const open = async (t: Test, { granted = 1_000, before }: Before = {}) => {
  const clock = testClock()
  const real = await openSqlite({
    path: ":memory:",
    durability: "process",
    now: clock.now,
    day: dayOf,
    holdLifeMs: life,
  })
  const { faults, store } = faulty(real)
  const metrics = createMetrics({ defaults: false })
  const lines: string[] = []
  const fields: object[] = []
  const write = (these: object, message: string) => {
    lines.push(message)
    fields.push(these)
  }
  const log: Log = { debug: () => {}, info: write, warn: write, error: write }
  await before?.(real, clock)
  const ledger = createLedger({ store, clock, log, metrics: metrics.forPlugin("ledger"), holdLifeMs: life })
  await real.accounts.grant("g", alice, granted, "gift")
  t.teardown(async () => {
    faults.clear()
    const stopped = ledger.stop(60_000)
    await clock.advance(60_000)
    await stopped
    for await (const finding of checkLedger(real)) t.fail(finding.message)
    await real.close()
  })
  const metric = async (name: string): Promise<number> => {
    const line = (await metrics.render()).split("\n").find(text => text.startsWith(`tollgate_${name} `))
    return Number(line?.split(" ").at(-1) ?? 0)
  }
  return { clock, ledger, faults, lines, fields, metric, store: real }
}

t.test("a hold is settled by real usage, with key, price digest and usage in its row", async t => {
  const { ledger, store } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  t.equal(hold.micros, 400)
  t.equal(ledger.activeHolds(), 1)
  t.same(await hold.settle(priced(150), bill), { micros: 150, durable: true })
  t.equal(ledger.activeHolds(), 0)
  t.same(await ledger.balance(alice), { granted: 1_000, available: 850, held: 0, spent: 150 })
  const [row] = await store.accounts.entries(alice, { after: 1, limit: 1 })
  t.same(row?.detail, { ...detail, key: "key-1", priceDigest: "0123456789ab", ...bill })
})

t.test("a balance that does not reach is 402, too many holds are 429 with code 6005 and no retry-after", async t => {
  const { ledger } = await open(t)
  await t.rejects(ledger.hold(holdOf("a", 1_001)), { code: "credits_exhausted", message: "Credit balance exhausted" })
  const reservations = { requests: 1, windowMs: 60_000 }
  const hold = await ledger.hold(holdOf("b", 1, { reservations }))
  const message = "Too many reservation requests. Please try again later."
  await t.rejects(ledger.hold(holdOf("c", 1, { reservations })), {
    code: "reservations_exceeded",
    detail: { code: 6005, message },
    headers: {},
  })
  await hold.release()
  t.match(await ledger.balance(alice), { available: 1_000 })
})

t.test("what is charged is what was really taken", async t => {
  const { ledger, metric } = await open(t, { granted: 3_000_000 })
  const hold = await ledger.hold(holdOf("a", 2_000_000))
  t.same(await hold.settle(priced(5_000_000), bill), { micros: 3_000_000, durable: true })
  t.equal(await metric('credits_total{kind="settled",model="some-model"}'), 3)
  t.equal(await metric('credits_total{kind="shortfall",model="some-model"}'), 2)
  t.equal(await metric('credits_total{kind="held",model="some-model"}'), 2)
})

t.test("the first end counts: a hold that was settled is not released, and the other way round", async t => {
  const { ledger } = await open(t)
  const one = await ledger.hold(holdOf("a", 100))
  const ends = await Promise.all([one.settle(priced(60), bill), one.settle(priced(90), bill), one.release()])
  t.same(ends.slice(0, 2), [
    { micros: 60, durable: true },
    { micros: 60, durable: true },
  ])
  const other = await ledger.hold(holdOf("b", 100))
  await other.release()
  t.match(await other.settle(priced(60), bill), { micros: 0 })
  t.match(await ledger.balance(alice), { available: 940, spent: 60, held: 0 })
})

t.test(
  "a settle that the store does not take is answered within two seconds and goes on until it is durable",
  async t => {
    const { ledger, faults, clock } = await open(t)
    const hold = await ledger.hold(holdOf("a", 400))
    faults.set("settle", "before")
    const settled = hold.settle(priced(150), bill)
    await clock.advance(2_100)
    t.same(await settled, { micros: 150, durable: false })
    t.match(await ledger.balance(alice), { held: 400, spent: 0 })
    faults.clear()
    await clock.advance(5_100)
    t.match(await ledger.balance(alice), { held: 0, spent: 150 })
  },
)

t.test("a settle whose answer was lost charges once", async t => {
  const { ledger, faults, clock } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  faults.set("settle", "after")
  const settled = hold.settle(priced(150), bill)
  await clock.advance(1_000)
  faults.clear()
  await clock.advance(5_100)
  t.match(await settled, { micros: 150 })
  t.match(await ledger.balance(alice), { available: 850, spent: 150 })
})

t.test("a clock that is set back delays neither the next try nor the answer of who waits", async t => {
  const { ledger, faults, clock } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  faults.set("settle", "before")
  const settled = hold.settle(priced(150), bill)
  clock.set(-3_600_000)
  await clock.advance(2_100)
  t.match(await Promise.race([settled, "nothing yet"]), { durable: false })
  faults.clear()
  await clock.advance(5_100)
  t.match(await ledger.balance(alice), { spent: 150, held: 0 })
})

t.test("stopping waits for what is not durable yet", async t => {
  const { ledger, faults, clock } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
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
  const { ledger, faults, clock, lines, fields } = await open(t)
  const charged = await ledger.hold(holdOf("charged", 400))
  const released = await ledger.hold(holdOf("released", 300))
  faults.set("hold", "after")
  faults.set("settle", "before")
  faults.set("release", "before")
  const doubtful = t.rejects(ledger.hold(holdOf("doubtful", 200)))
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
  t.same(fields.slice(1), [
    { id: "charged", ...alice, micros: 150 },
    { id: "released", ...alice, micros: 300 },
    { id: "doubtful", ...alice, micros: 200 },
  ])
  t.match(lines.slice(1), [/has not confirmed a charge/, /has not confirmed a release/, /has not confirmed a release/])
  faults.clear()
  await clock.advance(60_000)
  t.match(await ledger.balance(alice), { held: 900, spent: 0 }, "and nothing is tried any more")
})

t.test("stopping tries at once what would have been tried later, and tells nothing when that goes well", async t => {
  const { ledger, faults, clock, lines } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  faults.set("settle", "before")
  const settled = hold.settle(priced(150), bill)
  await clock.advance(30_100)
  await settled
  faults.clear()
  const stopping = ledger.stop(7_000)
  await clock.advance(200)
  t.equal(await stopping, 0)
  t.same(lines, [])
  t.match(await ledger.balance(alice), { held: 0, spent: 150 })
})

t.test("a hold whose answer was lost is given back, and its call fails with 503", async t => {
  const { ledger, faults, clock } = await open(t)
  faults.set("hold", "after")
  await t.rejects(ledger.hold(holdOf("a", 400)), { code: "store_unavailable" })
  await clock.advance(200)
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
  t.equal(ledger.activeHolds(), 0)
})

t.test("the hold of a long call is renewed as long as it runs", async t => {
  const { ledger, clock, metric } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  await clock.advance(12 * life)
  t.match(await ledger.balance(alice), { held: 400 })
  t.equal(await metric("ledger_holds"), 1)
  t.ok((await metric("ledger_hold_age_seconds_max")) >= (11 * life) / 1_000)
  t.match(await hold.settle(priced(100), bill), { micros: 100, durable: true })
  t.equal(await metric("ledger_holds"), 0)
  t.equal(await metric("ledger_lapsed_total"), 0)
})

t.test("a hold that could not be renewed lapses; its call still pays, once, from what is available", async t => {
  const { ledger, clock, faults, store } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  faults.set("renew", "before")
  await clock.advance(life)
  t.match(await ledger.balance(alice), { held: 400 }, "who cannot renew does not sweep either")
  t.equal(await store.accounts.sweep(), 1, "but another replica does")
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
  t.match(await hold.settle(priced(100), bill), { micros: 100 })
  t.match(await ledger.balance(alice), { available: 900, spent: 100 })
})

t.test("a lapsed hold is counted and told, and its settle charges once", async t => {
  const { ledger, clock, lines, metric, store } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  await store.accounts.release("a", alice) // as a sweeper of another replica does
  await store.accounts.hold({ id: "dead", member: alice, micros: 5, least: 5 }) // of a process that died
  await clock.advance(2 * life)
  t.same(lines, ["a hold lapsed while its call was running"])
  t.equal(await metric("ledger_lapsed_total"), 1)
  t.match(await hold.settle(priced(100), bill), { micros: 100, durable: true })
  t.match(await ledger.balance(alice), { available: 900, held: 0, spent: 100 })
})

t.test("what the dead held lapses when a gateway starts, not only when it has lived for a while", async t => {
  const { ledger, clock, metric } = await open(t, {
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

t.test("a refund is given once and counted", async t => {
  const { ledger, metric } = await open(t, { granted: 5_000_000 })
  const hold = await ledger.hold(holdOf("a", 2_000_000))
  await hold.settle(priced(2_000_000), bill)
  t.equal(await ledger.refund("a", alice, "failed"), 2_000_000)
  t.equal(await ledger.refund("a", alice, "failed"), 0)
  t.equal(await ledger.refund("b", alice, "failed"), undefined)
  t.equal(await metric('credits_total{kind="refunded",model="other"}'), 2)
})

t.test("usage with quantities that are none is durable without them", async t => {
  const { ledger, store } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  const usage = { input: 10, output: Number.NaN, seconds: Number.POSITIVE_INFINITY, images: -1 }
  t.same(await hold.settle(priced(150), { usage, source: "counted" }), { micros: 150, durable: true })
  const [row] = await store.accounts.entries(alice, { after: 1, limit: 1 })
  t.same(row?.detail?.usage, { input: 10 })
})

t.test("a price that is no amount is logged and never retried", async t => {
  const { ledger, lines, clock } = await open(t)
  const hold = await ledger.hold(holdOf("a", 400))
  t.match(await hold.settle(priced(Number.NaN), bill), { durable: false })
  t.same(lines, ["the ledger could not do what it must"])
  await clock.advance(2 * life)
  t.match(await ledger.balance(alice), { available: 1_000, held: 0 })
})
