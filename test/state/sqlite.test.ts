import { randomUUID } from "node:crypto"
import { statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import fc from "fast-check"
import { type Test, t } from "tap"
import { checkLedger } from "../../core/money/check.ts"
import { openSqlite, type SqliteOptions } from "../../core/state/sqlite.ts"
import type { KeyRecord, Organisation, Store } from "../../core/state/store.ts"
import { alice, chargeOf, dayOf, detail, holdOf, life, start, storeContract } from "../fixtures/store-contract.ts"
import { until } from "../fixtures/until.ts"

const options = (more: Partial<SqliteOptions>): SqliteOptions => ({
  path: ":memory:",
  durability: "process",
  now: () => start,
  day: dayOf,
  holdLifeMs: life,
  ...more,
})

const acme: Organisation = { name: "acme", title: "Acme", gateway: true, models: "all", disabled: [] }
const key: KeyRecord = { id: "key-1", ...alice, name: "", state: "valid", createdAt: start }

const open = async (t: Test, more: Partial<SqliteOptions>) => {
  const store = await openSqlite(options(more))
  t.teardown(() => store.close())
  return store
}

t.test("in memory", async t => {
  storeContract(t, (_, given) => openSqlite({ ...given, path: ":memory:", durability: "process" }))
})

t.test("in a file that survives a power cut", async t => {
  storeContract(t, (t, given) =>
    openSqlite({ ...given, path: join(t.testdir(), "deep", "store.db"), durability: "power" }),
  )
})

t.test("a second gateway on the same file is refused, until the first has gone", async t => {
  const path = join(t.testdir(), "store.db")
  const first = await open(t, { path })
  await t.rejects(openSqlite(options({ path })), /another gateway is running on it/)
  await first.close()
  t.ok((await open(t, { path })).ready())
})

t.test("the command line tool writes beside the gateway, which sees it at once", async t => {
  const path = join(t.testdir(), "store.db")
  const gateway = await open(t, { path })
  const tool = await open(t, { path, owner: false })
  await tool.accounts.grant("g", alice, 500, "gift")
  t.same(await gateway.accounts.hold(holdOf("a", 500)), { state: "held", micros: 500 })
  t.match(await tool.accounts.balance(alice), { available: 500, held: 0 })
})

t.test("what the tool commits after the gateway looked, and before its group, is not overwritten", async t => {
  const path = join(t.testdir(), "store.db")
  const gateway = await open(t, { path })
  const tool = await open(t, { path, owner: false })
  await gateway.accounts.grant("g", alice, 500, "gift")
  t.match(await gateway.accounts.balance(alice), { granted: 500 }, "the gateway remembers")
  const given = tool.accounts.grant("h", alice, 100, "gift") // commits first in the next turn
  const settled = gateway.accounts.settle(chargeOf("a", 50))
  await Promise.all([given, settled])
  t.match(await gateway.accounts.balance(alice), { granted: 600, spent: 50 })
  const rows = await gateway.accounts.entries(alice, { after: 0, limit: 10 })
  t.same(
    rows.map(({ sequence, id }) => [sequence, id]),
    [
      [1, "g"],
      [2, "h"],
      [3, "a"],
    ],
  )
})

t.test("a key that the tool disables, enables or revokes is so for the gateway's next call", async t => {
  const path = join(t.testdir(), "store.db")
  const gateway = await open(t, { path })
  const tool = await open(t, { path, owner: false })
  t.equal(await gateway.directory.identify("d1"), undefined)
  await tool.directory.createOrganisation(acme)
  await tool.directory.createKey(key, "d1")
  const seen = async () => (await gateway.directory.identify("d1"))?.key.state
  t.equal(await seen(), "valid", "an unknown key is not remembered as unknown")
  for (const state of ["disabled", "valid", "revoked"] as const) {
    await tool.directory.changeKey("key-1", state)
    t.equal(await seen(), state)
    t.equal(await seen(), state)
  }
  await tool.directory.changeOrganisation("acme", () => ({ gateway: false }))
  t.match(await gateway.directory.identify("d1"), { organisation: { gateway: false } })
})

t.test("a key that the gateway revokes itself is so before anybody can call again", async t => {
  const { directory } = await open(t, {})
  await directory.createOrganisation(acme)
  await directory.createKey(key, "d1")
  t.match(await directory.identify("d1"), { key: { state: "valid" } })
  const revoked = directory.changeKey("key-1", "revoked")
  t.match(await directory.identify("d1"), { key: { state: "valid" } }, "not before it is durable")
  const next = revoked.then(() => directory.identify("d1")) // in the turn of the COMMIT
  t.match(await next, { key: { state: "revoked" } })
})

t.test("gateway and tool may write the same account in any order: no credit is lost or made", async t => {
  const folder = t.testdir()
  const moves = fc.array(fc.record({ by: fc.constantFrom("gateway", "tool"), grant: fc.boolean(), micros: fc.nat(90) }))
  const property = fc.asyncProperty(moves, async moves => {
    const path = join(folder, `${randomUUID()}.db`)
    const stores = {
      gateway: await openSqlite(options({ path })),
      tool: await openSqlite(options({ path, owner: false })),
    }
    let [granted, spent] = [0, 0]
    for (const [at, { by, grant, micros }] of moves.entries()) {
      const { accounts } = stores[by as keyof typeof stores]
      if (grant) await accounts.grant(`g${at}`, alice, micros, "gift")
      else spent += (await accounts.settle(chargeOf(`c${at}`, micros))).charged
      if (grant) granted += micros
      const wanted = { granted, available: granted - spent, held: 0, spent }
      for (const { accounts } of Object.values(stores)) t.same(await accounts.balance(alice), wanted)
    }
    for await (const finding of checkLedger(stores.gateway)) t.fail(finding.message)
    await stores.tool.close()
    await stores.gateway.close()
  })
  await fc.assert(property, { numRuns: 30 }) // the error says seed and path
})

t.test("what the tool charges of credits that calls hold makes no balance, hold or charge negative", async t => {
  const path = join(t.testdir(), "store.db")
  const { accounts: gateway } = await open(t, { path })
  const { accounts: tool } = await open(t, { path, owner: false })
  await gateway.grant("g", alice, 100, "gift")
  await gateway.hold(holdOf("small", 10))
  await gateway.hold(holdOf("large", 90))
  t.match(await tool.settle(chargeOf("lost", 60)), { charged: 60, shortfall: 0 })
  const seen = () => gateway.balance(alice)
  t.same(await seen(), { granted: 100, available: 0, held: 40, spent: 60 })
  t.same(await gateway.hold(holdOf("next", 1)), { state: "exhausted" })
  t.same(await gateway.hold(holdOf("free", 5, { least: 0 })), { state: "held", micros: 0 })
  t.match(await gateway.settle(chargeOf("lapsed", 5)), { charged: 0, shortfall: 5 })
  t.match(await gateway.settle(chargeOf("small", 7)), { charged: 7, shortfall: 0 })
  t.same(await seen(), { granted: 100, available: 0, held: 33, spent: 67 })
  t.match(await gateway.settle(chargeOf("large", 90)), { charged: 33, shortfall: 57 })
  t.same(await seen(), { granted: 100, available: 0, held: 0, spent: 100 })
  for await (const finding of checkLedger({ accounts: gateway } as Store)) t.fail(finding.message)
})

t.test("what was confirmed is there after opening again; holds died with their calls", async t => {
  const path = join(t.testdir(), "store.db")
  const before = await open(t, { path })
  await before.accounts.grant("g", alice, 1_000, "gift")
  await before.accounts.hold(holdOf("a", 300))
  await before.accounts.settle(chargeOf("a", 200))
  await before.accounts.hold(holdOf("b", 300))
  await before.close()
  const after = await open(t, { path })
  t.same(await after.accounts.balance(alice), { granted: 1_000, available: 800, held: 0, spent: 200 })
  t.match(await after.accounts.settle(chargeOf("a", 200)), { repeated: true })
})

t.test("a write that waits when the store is closed is committed, later ones are refused with 503", async t => {
  const path = join(t.testdir(), "store.db")
  const store = await open(t, { path })
  const granted = store.accounts.grant("g", alice, 10, "gift").catch(() => {})
  const put = store.records.put("k", "v", 1_000)
  await store.close()
  await Promise.all([granted, put])
  t.notOk(store.ready())
  await t.rejects(store.records.put("k", "v", 1_000), { code: "store_unavailable", headers: { "retry-after": "1" } })
  await t.rejects(store.directory.identify("x"), { code: "store_unavailable" })
  t.match(await (await open(t, { path })).accounts.balance(alice), { granted: 10 })
})

t.test("two charges of one group add up, however many members were charged between them", async t => {
  const { accounts } = await open(t, {})
  await accounts.grant("g", alice, 1_000, "gift")
  const others = Array.from({ length: 10_000 }, (_, at) => ({ organisation: "acme", member: `other-${at}` }))
  await Promise.all([
    accounts.settle(chargeOf("first", 100)),
    ...others.map(member => accounts.settle(chargeOf("theirs", 0, { member }))),
    accounts.settle(chargeOf("second", 200)),
  ])
  t.match(await accounts.balance(alice), { available: 700, spent: 300 })
  const rows = await accounts.entries(alice, { after: 0, limit: 10 })
  t.same(
    rows.map(({ id }) => id),
    ["g", "first", "second"],
  )
})

t.test("a write that fails is rejected alone, with what it changed in memory taken back", async t => {
  const store = await open(t, {})
  await store.accounts.grant("g", alice, 1_000, "gift")
  await store.accounts.hold(holdOf("bad", 100))
  const wrong = { ...detail, key: null as unknown as string } // violates NOT NULL
  const results = await Promise.allSettled([
    store.accounts.settle(chargeOf("good-1", 10)),
    store.accounts.settle(chargeOf("bad", 50, { detail: wrong })),
    store.accounts.settle(chargeOf("good-2", 20)),
    store.records.put("k", "v", 1_000),
  ])
  t.same(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "fulfilled"],
  )
  t.same(await store.accounts.balance(alice), { granted: 1_000, available: 870, held: 100, spent: 30 })
  t.same(
    (await store.accounts.entries(alice, { after: 0, limit: 9 })).map(({ id }) => id),
    ["g", "good-1", "good-2"],
  )
  await store.accounts.release("bad", alice)
  t.same(await store.accounts.hold(holdOf("bad", 100)), { state: "held", micros: 100 }, "it was not settled")
})

t.test("the last settled calls of a member are remembered, and no more", async t => {
  const { accounts } = await open(t, {})
  await accounts.grant("g", alice, 1_000, "gift")
  const ids = Array.from({ length: 17 }, (_, at) => `call-${at}`)
  for (const id of ids) await accounts.settle(chargeOf(id, 1))
  const held = async (id: string) => (await accounts.hold(holdOf(id, 5))) as { readonly micros?: number }
  for (const id of ids.slice(1)) t.match(await held(id), { micros: 0 }, id)
  t.match(await held("call-0"), { micros: 5 })
})

t.test("a group that cannot commit is rejected as a whole, and the store says when it is back", async t => {
  const path = join(t.testdir(), "store.db")
  const states: boolean[] = []
  const store = await open(t, { path, onState: up => states.push(up) })
  await store.accounts.grant("g", alice, 1_000, "gift")
  await store.accounts.hold(holdOf("a", 100))
  await store.directory.createOrganisation(acme)
  await store.directory.createKey(key, "d1")
  t.match(await store.directory.identify("d1"), { key: { state: "valid" } })
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec("BEGIN IMMEDIATE") // holds the file longer than the store waits
  const results = await Promise.allSettled([
    store.accounts.settle(chargeOf("a", 70)),
    store.directory.changeKey("key-1", "revoked"),
    store.records.put("k", "v", 9),
  ])
  t.match(results, [
    { status: "rejected", reason: { code: "store_unavailable" } },
    { status: "rejected", reason: { code: "store_unavailable" } },
    { status: "rejected", reason: { code: "store_unavailable" } },
  ])
  t.notOk(store.ready())
  await t.rejects(store.accounts.hold(holdOf("b", 1)), { code: "store_unavailable" }, "it could not be charged")
  t.match(await store.accounts.balance(alice), { available: 900, held: 100, spent: 0 })
  t.match(await store.directory.identify("d1"), { key: { state: "valid" } }, "what was not confirmed is not seen")
  other.exec("COMMIT")
  t.match(await store.accounts.settle(chargeOf("a", 70)), { charged: 70, repeated: false })
  t.ok(store.ready())
  t.same(states, [false, true])
})

t.test("a store that could not write finds out by itself when it can again", async t => {
  const path = join(t.testdir(), "store.db")
  let failures = 0
  const observe = (_: string, __: number, failed: boolean): void => {
    if (failed) failures += 1
  }
  const store = await open(t, { path, observe })
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec("BEGIN IMMEDIATE")
  await t.rejects(store.records.put("k", "v", 9), { code: "store_unavailable" })
  t.notOk(store.ready())
  await until(() => failures === 3) // twice more, asked by nobody
  other.exec("COMMIT")
  await until(() => store.ready())
})

t.test("a window is forgotten when it is wholly free again, and not before", async t => {
  let now = start
  const store = await open(t, { now: () => now })
  const hit = async () => (await store.windows.hit("common", alice, { requests: 1, windowMs: 60_000 })).allowed
  t.ok(await hit())
  now += 59_999
  await store.accounts.sweep()
  t.notOk(await hit())
  now += 1
  await store.accounts.sweep()
  now -= 60_000 // what is remembered would refuse at the time of its hit
  t.ok(await hit())
})

t.test("a file of a newer version is not touched", async t => {
  const path = join(t.testdir(), "store.db")
  const newer = new DatabaseSync(path)
  newer.exec("PRAGMA user_version = 99")
  newer.close()
  await t.rejects(openSqlite(options({ path })), /newer Tollgate/)
  await t.rejects(openSqlite(options({ path })), /newer Tollgate/, "and the lock was given back")
})

t.test("a file that cannot be opened is named, and so is one that is no store", async t => {
  const folder = t.testdir({
    "is-a-folder.db": {},
    "text.db": "no database, but long enough to be looked at ".repeat(100),
  })
  for (const name of ["is-a-folder.db", "text.db"]) {
    const path = join(folder, name)
    await t.rejects(openSqlite(options({ path })), { message: `The store ${path} cannot be opened: ` })
    await t.rejects(openSqlite(options({ path, owner: false })), { message: `The store ${path} cannot be opened: ` })
  }
})

t.test("a new store is its owner's alone, with the files beside it", async t => {
  const path = join(t.testdir(), "store.db")
  const store = await open(t, { path })
  await store.directory.createOrganisation(acme)
  for (const file of ["", "-wal", "-shm", ".lock"]) t.equal(statSync(path + file).mode & 0o777, 0o600, file)
})
