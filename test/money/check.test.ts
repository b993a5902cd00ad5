import t from "tap"
import { checkLedger, type Finding } from "../../core/money/check.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Accounts, Balance, Entry, OpenHoldState, Store } from "../../core/state/store.ts"
import { alice, bob, chargeOf, dayOf, detail, holdOf, life, start } from "../fixtures/store-contract.ts"

const findings = async (store: Store): Promise<readonly Finding[]> => {
  const found: Finding[] = []
  for await (const finding of checkLedger(store)) found.push(finding)
  return found
}

/** A store that says what it is told to say. */
const saying = (balance: Balance, rows: readonly Partial<Entry>[], holds: readonly OpenHoldState[] = []): Store => {
  const entries = rows.map((row, at) => ({
    sequence: at + 1,
    kind: "grant",
    id: `id-${at}`,
    member: alice,
    at: start,
    micros: 0,
    shortfall: 0,
    ...row,
  })) as readonly Entry[]
  const accounts: Partial<Accounts> = {
    async *all() {
      yield alice
    },
    balance: async () => balance,
    holds: async () => holds,
    entries: async (_, { after, limit }) => entries.filter(({ sequence }) => sequence > after).slice(0, limit),
  }
  return { accounts } as Store
}

/** A store in which a verb, asked for the first time, finds that something happened just before. */
const moving = (verb: "balance" | "holds", before: Store, after: Store): Store => {
  let now = before
  const of = <Verb extends keyof Accounts>(name: Verb) =>
    ((...words: never[]) => {
      if (name === verb) now = after
      return (now.accounts[name] as (...words: never[]) => unknown)(...words)
    }) as Accounts[Verb]
  const accounts = { all: of("all"), balance: of("balance"), holds: of("holds"), entries: of("entries") }
  return { accounts } as unknown as Store
}

const rulesOf = async (store: Store) => (await findings(store)).map(({ rule }) => rule)
const sums = (granted: number, available: number, held: number, spent: number): Balance => ({
  granted,
  available,
  held,
  spent,
})
const grant = { micros: 100 }
const charge = { kind: "charge", id: "c", micros: -40, detail } as const

t.test("a right ledger has no finding", async t => {
  const store = await openSqlite({
    path: ":memory:",
    durability: "process",
    now: () => start,
    day: dayOf,
    holdLifeMs: life,
  })
  t.teardown(() => store.close())
  await store.accounts.grant("g", alice, 1_000, "gift")
  for (let at = 0; at < 5; at += 1) {
    await store.accounts.hold(holdOf(`c${at}`, 100))
    await store.accounts.settle(chargeOf(`c${at}`, 10 * at))
  }
  await store.accounts.hold(holdOf("open", 100))
  await store.accounts.refund("c3", alice, "failed")
  await store.accounts.grant("g", bob, 10, "gift")
  t.same(await checkLedger(store).next(), { done: true, value: { members: 2, rows: 7 + 1 } })
})

t.test("each broken rule is found", async t => {
  t.same(await rulesOf(saying(sums(100, 61, 0, 40), [grant, charge])), [1], "the sum")
  t.same(await rulesOf(saying(sums(100, -10, 70, 40), [grant, charge], [hold("x", 70)])), [2], "below zero")
  t.same(await rulesOf(saying(sums(100, 50, 10, 40), [grant, charge], [hold("c", 10)])), [3], "settled and still open")
  t.same(await rulesOf(saying(sums(100, 20, 0, 80), [grant, charge, charge])), [4], "settled twice")
  const refund = { kind: "refund", id: "c", micros: 40 } as const
  t.same(await rulesOf(saying(sums(100, 140, 0, -40), [grant, charge, refund, refund])), [4, 2], "refunded twice")
  t.same(await rulesOf(saying(sums(100, 65, 0, 35), [grant, charge, { ...refund, micros: 5 }])), [4], "another amount")
  t.same(
    await rulesOf(saying(sums(100, 100, 0, 0), [grant, { ...refund, micros: 0, id: "never" }])),
    [4],
    "never charged",
  )
  t.same(await rulesOf(saying(sums(100, 70, 0, 30), [grant, charge])), [5], "the stored balance")
  t.same(await rulesOf(saying(sums(90, 50, 0, 40), [grant, charge])), [5], "what was granted")
  t.same(await rulesOf(saying(sums(100, 60, 0, 40), [grant, { ...charge, sequence: 3 }])), [6], "a gap")
  t.same(await rulesOf(saying(sums(100, 90, 10, 0), [grant], [hold("x", 9)])), [5], "what is held")
  t.same(await rulesOf(saying(sums(100, 90, 10, 0), [grant], [hold("x", 10, -900_000)])), [3], "past its life")
  const lapse = { kind: "lapse", id: "l" } as const
  t.same(await rulesOf(saying(sums(100, 100, 0, 0), [grant, lapse, lapse])), [3], "lapsed twice")
  t.same(
    await rulesOf(saying(sums(100, 100, 0, 0), [grant, { ...lapse, micros: 7 }])),
    [5],
    "a lapse that moves credits",
  )
  t.same(await rulesOf(saying(sums(60, 60, 0, 0), [grant, { micros: -40 }])), [2], "a grant that takes")
  t.same(
    await rulesOf(saying(sums(100, 60, 0, 40), [grant, { ...charge, shortfall: -1 }])),
    [2],
    "less than no shortfall",
  )
  t.same(
    await rulesOf(saying(sums(100, 140, 0, -40), [grant, { ...charge, micros: 40 }])),
    [2, 2],
    "a charge that gives",
  )
})

t.test("a hold that waits for the sweeper is no finding", async t => {
  t.same(await rulesOf(saying(sums(100, 90, 10, 0), [grant], [hold("x", 10, -60_000)])), [])
})

t.test("a long ledger is read to its end, and counted", async t => {
  const rows = Array.from(
    { length: 30_000 },
    (_, at) => ({ kind: "charge", id: `c${at}`, micros: -1, detail }) as const,
  )
  const checked = checkLedger(saying(sums(30_000, 0, 0, 30_000), [{ micros: 30_000 }, ...rows]))
  t.same(await checked.next(), { done: true, value: { members: 1, rows: 30_001 } })
})

t.test("what moves while it is read is read again", async t => {
  const before = saying(sums(100, 100, 0, 0), [grant])
  const charged = saying(sums(100, 60, 0, 40), [grant, charge])
  t.same(await rulesOf(moving("balance", before, charged)), [], "a charge after the rows were read")
  const held = saying(sums(100, 90, 10, 0), [grant], [hold("x", 10)])
  t.same(await rulesOf(moving("holds", before, held)), [], "a hold after the balance was read")
})

const hold = (id: string, micros: number, expiresInMs = 1_000): OpenHoldState => ({ id, micros, expiresInMs })

t.test("a finding names member and row", async t => {
  const found = await findings(saying(sums(100, 60, 0, 40), [grant, { ...charge, sequence: 3 }]))
  t.same(found, [{ member: alice, rule: 6, message: "row 3 (charge c): follows row 1" }])
})
