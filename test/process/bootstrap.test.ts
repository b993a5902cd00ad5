import t, { type Test } from "tap"
import { bootstrap } from "../../core/bootstrap.ts"
import { createLog } from "../../core/observe/log.ts"
import { storeUnavailable } from "../../core/state/failure.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Organisation, Store } from "../../core/state/store.ts"
import { testClock } from "../../core/testing.ts"
import { dayOf, life } from "../fixtures/store-contract.ts"
import { until } from "../fixtures/until.ts"

const log = createLog({ level: "silent" })
const alice = { organisation: "acme", member: "alice" }
const acme = [
  {
    name: "acme",
    gateway: true,
    models: "all" as const,
    members: [{ name: "alice", micros: 500, keys: ["ab".repeat(32)] }],
  },
]

const open = async (t: Test): Promise<Store> => {
  const store = await openSqlite({
    path: ":memory:",
    durability: "process",
    now: Date.now,
    day: dayOf,
    holdLifeMs: life,
  })
  t.teardown(() => store.close())
  return store
}

/** The same store, whose n-th write fails: the process dies there, or the store goes away. */
const failingAt = (store: Store, failing: number): Store => {
  let write = 0
  const step =
    <Rest extends readonly unknown[], T>(verb: (...rest: Rest) => Promise<T>) =>
    async (...rest: Rest): Promise<T> => {
      write += 1
      if (write === failing) throw new Error("the store went away")
      return verb(...rest)
    }
  const { directory, accounts } = store
  return {
    ...store,
    directory: {
      identify: digest => directory.identify(digest),
      organisation: name => directory.organisation(name),
      organisations: () => directory.organisations(),
      changeOrganisation: (name, change) => directory.changeOrganisation(name, change),
      members: name => directory.members(name),
      keys: name => directory.keys(name),
      changeKey: (id, state) => directory.changeKey(id, state),
      createOrganisation: step(one => directory.createOrganisation(one)),
      createMember: step(one => directory.createMember(one)),
      createKey: step((key, digest) => directory.createKey(key, digest)),
    },
    accounts: Object.assign(Object.create(accounts), {
      grant: step((...rest: Parameters<typeof accounts.grant>) => accounts.grant(...rest)),
    }),
  }
}

t.test("a start that ends at any write is completed by the next one, and nothing is given twice", async t => {
  for (const failing of [1, 2, 3, 4]) {
    const store = await open(t)
    const clock = testClock()
    const cut = await bootstrap(acme, failingAt(store, failing), clock, log)
    cut.end() // the process is gone
    await bootstrap(acme, store, clock, log)
    t.match(await store.accounts.balance(alice), { granted: 500, available: 500 }, `write ${failing}`)
    t.match(await store.directory.identify("ab".repeat(32)), { key: alice })
  }
})

t.test("what exists is never changed", async t => {
  const store = await open(t)
  await bootstrap(acme, store, testClock(), log)
  await store.directory.changeOrganisation("acme", () => ({ gateway: false }))
  await bootstrap(acme, store, testClock(), log)
  t.match(await store.accounts.balance(alice), { granted: 500 })
  t.match(await store.directory.organisation("acme"), { gateway: false })
})

t.test(
  "a store that stays away is told once for each reason, and no call is served before it took the bootstrap",
  async t => {
    const store = await open(t)
    const clock = testClock()
    let why: string | undefined = "one"
    const create = store.directory.createOrganisation.bind(store.directory)
    Object.assign(store.directory, {
      createOrganisation: (organisation: Organisation) =>
        why === undefined ? create(organisation) : Promise.reject(storeUnavailable(new Error(why))),
    })
    const told: unknown[] = []
    const under = await bootstrap(acme, store, clock, {
      ...log,
      warn: fields => void told.push((fields as { err: Error }).err.cause),
    })
    await clock.advance(5_000)
    t.match(told, [{ message: "one" }])
    why = "two"
    await clock.advance(5_000)
    t.match(told, [{ message: "one" }, { message: "two" }])
    t.equal(told.length, 2)
    t.ok(under.waits)
    why = undefined
    await clock.advance(1_000)
    await until(() => !under.waits)
    t.match(await store.accounts.balance(alice), { granted: 500 })
  },
)

t.test("a bootstrap that is ended while it tries does not try again", async t => {
  const store = await open(t)
  const clock = testClock()
  let tries = 0
  let fail = (_: Error): void => {}
  const away: Store = {
    ...store,
    directory: Object.assign(Object.create(store.directory), {
      createOrganisation: () => {
        tries += 1
        return tries === 1 ? Promise.reject(new Error("away")) : new Promise((_, reject) => (fail = reject))
      },
    }),
  }
  const under = await bootstrap(acme, away, clock, log)
  await clock.advance(1_000)
  t.equal(tries, 2)
  under.end()
  fail(new Error("away still"))
  await clock.advance(10_000)
  t.equal(tries, 2)
})
