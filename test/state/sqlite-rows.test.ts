/** The ledger of the embedded store as its file has it: pages, broken rows, files of older versions. */

import { deepStrictEqual } from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import fc from "fast-check"
import { type Test, t } from "tap"
import { checkLedger } from "../../core/money/check.ts"
import { openSqlite, type SqliteOptions } from "../../core/state/sqlite.ts"
import type { Entry, MemberRef, Store } from "../../core/state/store.ts"
import { alice, bob, chargeOf, dayOf, life, start } from "../fixtures/store-contract.ts"

const open = async (t: Test, more: Pick<SqliteOptions, "path" | "owner">): Promise<Store> => {
  const store = await openSqlite({ durability: "process", now: () => start, day: dayOf, holdLifeMs: life, ...more })
  t.teardown(() => store.close())
  return store
}

const allOf = async (store: Store, member: MemberRef): Promise<readonly Entry[]> =>
  store.accounts.entries(member, { after: 0, limit: 10_000 })

const findingsOf = async (store: Store): Promise<readonly unknown[]> => {
  const found: unknown[] = []
  for await (const { member, rule } of checkLedger(store)) found.push(`${member.member} ${rule}`)
  return found
}

/** Two members whose rows stand between each other's. */
const busy = async (store: Store): Promise<void> => {
  for (const member of [alice, bob]) await store.accounts.grant("first", member, 100_000, "gift")
  await Promise.all(
    Array.from({ length: 400 }, (_, at) =>
      store.accounts.settle(chargeOf(`call-${at}`, at % 7, { member: at % 3 === 0 ? bob : alice })),
    ),
  )
}

t.test("any page of a long ledger is what stands there", async t => {
  const store = await open(t, { path: ":memory:" })
  await busy(store)
  const rows = await allOf(store, alice)
  t.same(
    rows.map(({ sequence }) => sequence),
    Array.from({ length: rows.length }, (_, at) => at + 1),
  )
  t.same(new Set(rows.map(({ member }) => member.member)), new Set(["alice"]))
  await fc.assert(
    fc.asyncProperty(fc.nat(300), fc.integer({ min: 1, max: 300 }), async (after, limit) => {
      deepStrictEqual(await store.accounts.entries(alice, { after, limit }), rows.slice(after, after + limit))
    }),
  )
})

t.test("a row that is gone, or that names a wrong one before it, is found, and ends no check", async t => {
  const spoilt: Readonly<Record<string, readonly string[]>> = {
    "DELETE FROM entries WHERE account = 1 AND sequence = 100": ["alice 6", "alice 5", "alice 5"],
    "UPDATE entries SET previous = row WHERE account = 1 AND sequence = 100": ["alice 6", "alice 5", "alice 5"],
    "UPDATE entries SET previous = 2 WHERE account = 1 AND sequence = 100": ["alice 6", "alice 5", "alice 5"],
    "UPDATE accounts SET last = 0 WHERE id = 1": ["alice 5", "alice 5"],
    "UPDATE entries SET micros = micros - 1 WHERE account = 2 AND sequence = 3": ["bob 5"],
  }
  for (const [statement, findings] of Object.entries(spoilt)) {
    const path = join(t.testdir(), "store.db")
    const store = await open(t, { path })
    await busy(store)
    t.same(await findingsOf(store), [])
    await store.close()
    const file = new DatabaseSync(path)
    t.equal(file.prepare(statement).run().changes, 1)
    file.close()
    const spoiltStore = await open(t, { path })
    t.same(await findingsOf(spoiltStore), findings, statement)
    await spoiltStore.close()
  }
})

t.test("the file of an older version is brought to this one by the gateway, not by the tool", async t => {
  const path = join(t.testdir(), "store.db")
  const older = new DatabaseSync(path)
  older.exec(readFileSync(join(import.meta.dirname, "..", "fixtures", "store-v1.sql"), "utf8"))
  older.close()
  await t.rejects(open(t, { path, owner: false }), /older Tollgate; start the gateway of this version once/)

  const store = await open(t, { path })
  t.match(await store.accounts.balance(alice), { granted: 1_000_000, spent: 3_930 })
  t.match(await store.accounts.balance(bob), { granted: 1_000_000, spent: 1_980 })
  const rows = await allOf(store, alice)
  t.equal(rows.length, 70)
  t.match(rows[0], { sequence: 1, kind: "grant", micros: 1_000_000, reason: "welcome" })
  t.match(rows[1], { sequence: 2, kind: "charge", id: "call-0", micros: -10, detail: { usage: { input: 10 } } })
  t.match(rows.at(-1), { sequence: 70, kind: "refund", id: "call-30", micros: 40, reason: "sorry" })
  t.same(await store.accounts.entries(alice, { after: 62, limit: 3 }), rows.slice(62, 65))
  t.match(await store.directory.identify("d1"), { key: { id: "key-1" } })
  t.same(await findingsOf(store), [])

  t.match(await store.accounts.settle(chargeOf("call-99", 500, { member: bob })), { charged: 500, repeated: false })
  t.match(
    await store.accounts.settle(chargeOf("call-98", 500, { member: bob })),
    { charged: 108, repeated: true },
    "once is once",
  )
  t.same(await findingsOf(store), [])
  const tool = await open(t, { path, owner: false })
  t.equal((await allOf(tool, bob)).length, 35)
})
