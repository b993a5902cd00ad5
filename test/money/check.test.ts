import t from "tap"
import { checkLedger, type Finding } from "../../core/money/check.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Accounts, Balance, Entry, OpenHoldState, Store } from "../../core/state/store.ts"
import { alice, chargeOf, dayOf, detail, holdOf, life, start } from "../fixtures/store-contract.ts"

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
  t.same(await findings(store), [])
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
})

const hold = (id: string, micros: number, expiresInMs = 1_000): OpenHoldState => ({ id, micros, expiresInMs })

t.test("a finding names member and row", async t => {
  const found = await findings(saying(sums(100, 60, 0, 40), [grant, { ...charge, sequence: 3 }]))
  t.same(found, [{ member: alice, rule: 6, message: "row 3 (charge c): follows row 1" }])
})
