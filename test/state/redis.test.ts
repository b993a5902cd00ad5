import { randomUUID } from "node:crypto"
import { inspect } from "node:util"
import { Redis } from "ioredis"
import { type Test, t } from "tap"
import { testClock } from "../../core/observe/clock.ts"
import { openRedis, type RedisOptions } from "../../core/state/redis.ts"
import { type RedisServer, startRedis } from "../fixtures/redis.ts"
import { alice, chargeOf, dayOf, holdOf, life, storeContract } from "../fixtures/store-contract.ts"
import { until } from "../fixtures/until.ts"

const options = (url: string, more: Partial<RedisOptions> = {}): RedisOptions => ({
  url,
  cluster: false,
  prefix: `t-${randomUUID()}`,
  deadlineMs: 400,
  now: Date.now,
  day: dayOf,
  holdLifeMs: life,
  ...more,
})

const open = async (t: Test, url: string, more: Partial<RedisOptions> = {}) => {
  const store = await openRedis(options(url, more))
  t.teardown(() => store.close())
  return store
}

t.test("one server", async t => {
  const { url } = await startRedis(t)
  storeContract(t, (_, given) => openRedis(options(url, { ...given, serverTime: false, deadlineMs: 5_000 })))
})

t.test("a server that refuses EVALSHA and SCRIPT", async t => {
  const refused = ["--rename-command", "EVALSHA", "", "--rename-command", "SCRIPT", ""]
  const { url } = await startRedis(t, { options: refused })
  const store = await open(t, url)
  const hits = Array.from({ length: 10 }, () => store.windows.hit("common", alice, { requests: 4, windowMs: 60_000 }))
  t.equal((await Promise.all(hits)).filter(({ allowed }) => allowed).length, 4)
})

t.test("two replicas share windows, holds and keys", async t => {
  const { url } = await startRedis(t)
  const prefix = "shared"
  const [one, other] = [await open(t, url, { prefix }), await open(t, url, { prefix })]
  const limit = { requests: 120, windowMs: 60_000 }
  const hits = Array.from({ length: 240 }, (_, at) => (at % 2 ? one : other).windows.hit("common", alice, limit))
  t.equal((await Promise.all(hits)).filter(({ allowed }) => allowed).length, 120)
  await one.accounts.grant("g", alice, 100, "gift")
  const holds = Array.from({ length: 50 }, (_, at) => (at % 2 ? one : other).accounts.hold(holdOf(`h${at}`, 100)))
  t.equal((await Promise.all(holds)).filter(({ state }) => state === "held").length, 1)
  await one.directory.createOrganisation({ name: "acme", title: "", gateway: true, models: "all", disabled: [] })
  await one.directory.createKey({ id: "k", name: "", state: "valid", createdAt: 1, ...alice }, "d")
  t.match(await other.directory.identify("d"), { key: { state: "valid" } })
  await one.directory.changeKey("k", "revoked")
  t.match(await other.directory.identify("d"), { key: { state: "revoked" } })
})

t.test("a replica sweeps the holds of one that died", async t => {
  const { url } = await startRedis(t)
  let now = Date.now()
  const more = { prefix: "shared", now: () => now, serverTime: false }
  const dead = await open(t, url, more)
  await dead.accounts.grant("g", alice, 100, "gift")
  await dead.accounts.hold(holdOf("a", 60))
  await dead.close()
  const other = await open(t, url, more)
  now += life
  t.equal(await other.accounts.sweep(), 1)
  t.match(await other.accounts.balance(alice), { available: 100, held: 0 })
  now += 10 * life
  t.equal(await other.accounts.sweep(), 0)
  await other.accounts.hold(holdOf("b", 60))
  now += life
  t.equal(await other.accounts.sweep(), 1, "a member that was forgotten is announced again")
})

t.test("a member stays announced for as long as this process takes it for announced", async t => {
  const { url } = await startRedis(t)
  let now = Date.now()
  const more = { prefix: "shared", now: () => now, serverTime: false }
  const [dying, other] = [await open(t, url, more), await open(t, url, more)]
  await dying.accounts.grant("g", alice, 100, "gift")
  const heldAndSwept = async (id: string) => {
    await dying.accounts.hold(holdOf(id, 60))
    now += life
    return other.accounts.sweep()
  }
  await dying.accounts.hold(holdOf("a", 60))
  await dying.accounts.release("a", alice)
  t.equal(await other.accounts.sweep(), 0, "nothing is held, but the announcement still counts")
  t.equal(await heldAndSwept("b"), 1)
  now += 4 * life
  t.equal(await other.accounts.sweep(), 0, "now it does not")
  t.equal(await heldAndSwept("c"), 1)
})

t.test("a window leaves Redis when it is wholly free again", async t => {
  const { url, ask } = await startRedis(t)
  const store = await open(t, url)
  const before = await ask("DBSIZE")
  await store.windows.hit("common", alice, { requests: 3, windowMs: 50 })
  t.not(await ask("DBSIZE"), before)
  await until(async () => (await ask("DBSIZE")) === before)
})

t.test("a clock set back hides no switch of an organisation, and no member from the sweepers", async t => {
  const { url } = await startRedis(t)
  const clock = testClock(Date.now())
  const prefix = "shared"
  const store = await open(t, url, { prefix, now: clock.now, steady: clock.steady })
  const tool = await open(t, url, { prefix })
  await store.directory.createOrganisation({ name: "acme", title: "", gateway: true, models: "all", disabled: [] })
  await store.directory.createKey({ id: "k", name: "", state: "valid", createdAt: 1, ...alice }, "d")
  t.match(await store.directory.identify("d"), { organisation: { gateway: true } })
  await store.accounts.grant("g", alice, 100, "gift")
  await store.accounts.hold(holdOf("a", 60))
  await store.accounts.release("a", alice)
  clock.set(-3_600_000)
  await tool.directory.changeOrganisation("acme", () => ({ gateway: false }))
  await clock.advance(1_000)
  t.match(await store.directory.identify("d"), { organisation: { gateway: false } })
  await clock.advance(life)
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  const sets = (await client.keys(`${prefix}:sweep:*`)) as string[]
  t.equal(sets.length, 1)
  await client.del(sets[0]!) // the sweepers of others, whose clocks are right, took the idle member off
  await store.accounts.hold(holdOf("b", 60))
  t.same(await client.keys(`${prefix}:sweep:*`), sets, "announced again")
})

t.test("user, password and database of the address count, on a connection made anew too", async t => {
  const redis = await startRedis(t)
  await redis.ask("ACL", "SETUSER", "gate", "on", ">secret", "~*", "+@all")
  const store = await open(t, `redis://gate:secret@127.0.0.1:${redis.port}/3`)
  await store.records.put("first", "é€😀", 60_000)
  await redis.ask("CLIENT", "KILL", "USER", "gate")
  await until(async () => (await store.records.get("first").catch(() => undefined)) === "é€😀")
  await store.records.put("second", "", 60_000)
  t.equal(await store.records.get("second"), "")
  t.equal(await redis.ask("DBSIZE"), ":0")
})

t.test("a store that may evict keys is refused", async t => {
  const { url, ask } = await startRedis(t, { options: ["--maxmemory-policy", "allkeys-lru"] })
  await t.rejects(openRedis(options(url)), /may evict keys \(maxmemory-policy allkeys-lru\)/)
  await ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
  t.ok((await open(t, url)).ready())
})

t.test("opening while Redis is down does not fail; it is taken when it comes", async t => {
  const redis = await startRedis(t, { started: false })
  const states: boolean[] = []
  const store = await open(t, redis.url, { onState: up => states.push(up) })
  t.notOk(store.ready())
  const refused = { code: "store_unavailable", headers: { "retry-after": "1" } }
  await t.rejects(store.directory.identify("x"), refused)
  await t.rejects(store.accounts.hold(holdOf("a", 1)), refused)
  await t.rejects(store.windows.hit("common", alice, { requests: 1, windowMs: 1 }), refused)
  await redis.restart()
  await until(() => store.ready())
  t.equal(await store.directory.identify("x"), undefined)
  t.same(states, [false, true])
})

t.test("a killed Redis is 503 until it is back, and nothing that was confirmed is lost", async t => {
  const redis = await startRedis(t)
  const states: boolean[] = []
  const store = await open(t, redis.url, { onState: up => states.push(up) })
  await store.accounts.grant("g", alice, 100, "gift")
  await store.accounts.hold(holdOf("a", 60))
  await redis.kill()
  await until(() => !store.ready())
  await t.rejects(store.accounts.settle(chargeOf("a", 50)), { code: "store_unavailable" })
  await redis.restart()
  await until(() => store.ready())
  t.match(await store.accounts.settle(chargeOf("a", 50)), { charged: 50, repeated: false })
  t.match(await store.accounts.balance(alice), { granted: 100, available: 50, held: 0, spent: 50 })
  t.same(states, [true, false, true])
})

t.test("a Redis that stops answering costs one deadline, then calls fail at once until it goes on", async t => {
  const redis = await startRedis(t)
  const states: boolean[] = []
  const store = await open(t, redis.url, { deadlineMs: 300, onState: up => states.push(up) })
  await store.accounts.grant("g", alice, 100, "gift")
  redis.pause()
  const lost = await Promise.allSettled(
    Array.from({ length: 20 }, (_, at) => store.accounts.settle(chargeOf(`c${at}`, 1))),
  )
  t.ok(lost.every(({ status }) => status === "rejected"))
  t.notOk(store.ready())
  await t.rejects(store.records.get("x"), { code: "store_unavailable" })
  redis.resume()
  await until(() => store.ready())
  const again = await Promise.all(Array.from({ length: 20 }, (_, at) => store.accounts.settle(chargeOf(`c${at}`, 1))))
  t.ok(again.every(({ charged }) => charged === 1))
  t.match(await store.accounts.balance(alice), { available: 80, spent: 20 })
  t.equal((await store.accounts.entries(alice, { after: 0, limit: 100 })).length, 21)
  t.same(states, [true, false, true])
})

t.test("a turn of ours that is longer than the deadline is no fault of Redis", async t => {
  const { url } = await startRedis(t)
  const states: boolean[] = []
  const store = await open(t, url, { deadlineMs: 200, onState: up => states.push(up) })
  const block = () => {
    for (const from = performance.now(); performance.now() - from < 300; );
  }
  const hit = () => store.windows.hit("common", alice, { requests: 9, windowMs: 60_000 })
  const before = hit() // asked, and not sent yet
  block()
  t.match(await before, { allowed: true })
  const after = hit()
  setImmediate(() => setImmediate(block)) // sent, and the answer not read
  t.match(await after, { allowed: true })
  t.ok(store.ready())
  t.same(states, [true])
})

t.test("a Redis that forgot the scripts learns them again", async t => {
  const redis = await startRedis(t)
  const store = await open(t, redis.url)
  await store.accounts.grant("g", alice, 100, "gift")
  await redis.ask("SCRIPT", "FLUSH")
  t.match(await store.accounts.grant("h", alice, 100, "gift"), { granted: 200 })
})

t.test("scripts tell the time by the server's clock, not by this process's", async t => {
  const { url } = await startRedis(t)
  const store = await open(t, url, { now: () => 5 })
  await store.accounts.grant("g", alice, 100, "gift")
  const [row] = await store.accounts.entries(alice, { after: 0, limit: 1 })
  t.ok(Math.abs(row!.at - Date.now()) < 60_000)
})

t.test("an address that is none is refused without a word of it", async t => {
  for (const cluster of [false, true])
    for (const url of [
      "//user:PASSWORD@cache:6379",
      "redis//user:PASSWORD@cache",
      "redis://user:PASSWORD@cache:port",
    ]) {
      const error = await openRedis(options(url, { cluster })).catch(error => error)
      t.match(error, { message: "The address of Redis is not redis://host:port" })
      t.notMatch(JSON.stringify([error.stack, Object.values(error)]), "PASSWORD")
    }
})

/** What is told of the state, as the log has it. */
const toldStates = () => {
  const told: string[] = []
  const onState = (up: boolean, cause?: unknown): void => void told.push(up ? "up" : String(cause))
  return { told, onState }
}

t.test("a wrong password is told without the password, and the right one is taken when it counts", async t => {
  const redis = await startRedis(t)
  await redis.ask("ACL", "SETUSER", "gate", "on", ">another", "~*", "+@all")
  const causes: unknown[] = []
  const url = `redis://gate:PASSWORD@127.0.0.1:${redis.port}`
  const store = await open(t, url, { onState: (_, cause) => causes.push(cause) })
  t.match(causes[0], { message: /^WRONGPASS/ })
  t.notMatch(inspect(causes, { depth: 9, showHidden: true }), "PASSWORD")
  await redis.ask("ACL", "SETUSER", "gate", "resetpass", ">PASSWORD")
  await until(() => store.ready())
})

t.test("a database that Redis does not have is refused, and no other is taken in its place", async t => {
  const redis = await startRedis(t)
  const { told, onState } = toldStates()
  const store = await open(t, `${redis.url}/99`, { onState })
  await t.rejects(store.records.put("x", "y", 60_000), { code: "store_unavailable" })
  t.match(told, [/DB index is out of range/])
  t.equal(await redis.ask("DBSIZE"), ":0")
  await t.rejects(openRedis(options(`${redis.url}/3`, { cluster: true })), /has one database/)
})

const refusals: readonly {
  readonly says: string
  begin(redis: RedisServer): unknown
  end(redis: RedisServer): unknown
}[] = [
  {
    says: "OOM",
    begin: redis => redis.ask("CONFIG", "SET", "maxmemory", "1"),
    end: redis => redis.ask("CONFIG", "SET", "maxmemory", "0"),
  },
  {
    says: "NOREPLICAS",
    begin: redis => redis.ask("CONFIG", "SET", "min-replicas-to-write", "1"),
    end: redis => redis.ask("CONFIG", "SET", "min-replicas-to-write", "0"),
  },
  {
    says: "READONLY",
    begin: redis => redis.ask("REPLICAOF", "127.0.0.1", "1"),
    end: redis => redis.ask("REPLICAOF", "NO", "ONE"),
  },
]

for (const { says, begin, end } of refusals)
  t.test(`a Redis that refuses writes (${says}) is away, once and with its reason, until it takes them`, async t => {
    const redis = await startRedis(t)
    const { told, onState } = toldStates()
    const store = await open(t, redis.url, { onState })
    await begin(redis)
    await t.rejects(store.accounts.hold(holdOf("a", 1)), { code: "store_unavailable" })
    t.notOk(store.ready())
    await t.rejects(store.directory.identify("x"), { code: "store_unavailable" }, "who reads is not let in either")
    const failed = async () =>
      Number(/cmdstat_eval:.*failed_calls=(\d+)/.exec(await redis.ask("INFO", "commandstats"))?.[1] ?? 0)
    await until(async () => (await failed()) > 2)
    const besides = await open(t, redis.url, { owner: false })
    t.equal(await besides.directory.organisation("acme"), undefined, "who only looks may")
    await end(redis)
    await until(() => store.ready())
    t.match(told, ["up", new RegExp(`^Error: ${says} `), "up"])
    t.equal(told.length, 3)
    t.match(await store.accounts.grant("g", alice, 5, "gift"), { granted: 5 })
  })

t.test("a Redis whose writes are paused is away until they go on, on new connections too", async t => {
  const redis = await startRedis(t)
  const { told, onState } = toldStates()
  const store = await open(t, redis.url, { onState })
  await redis.ask("CLIENT", "PAUSE", "60000", "WRITE")
  await t.rejects(store.accounts.grant("g", alice, 5, "gift"), { code: "store_unavailable" })
  await until(async () => /cmd=eval /.test(await redis.ask("CLIENT", "LIST")))
  t.notOk(store.ready())
  await redis.ask("CLIENT", "UNPAUSE")
  await until(() => store.ready())
  t.equal(told.length, 3)
})

t.test("a Redis that came back without its data is away, not without keys", async t => {
  const redis = await startRedis(t)
  const { told, onState } = toldStates()
  const prefix = "shared"
  const store = await open(t, redis.url, { onState, prefix })
  const name = (await redis.ask("GET", "shared:name")).split("\r\n")[1]!
  await redis.ask("FLUSHALL")
  await redis.ask("CLIENT", "KILL", "TYPE", "normal")
  await until(() => told.length > 2)
  t.match(told, ["up", "Error: Redis closed the connection", /without its data.*restart the gateway to begin anew/])
  await t.rejects(store.directory.identify("x"), { code: "store_unavailable" })
  t.equal(
    await (await open(t, redis.url, { prefix })).directory.identify("x"),
    undefined,
    "who starts anew begins anew",
  )
  t.notOk(store.ready())
  await redis.ask("SET", "shared:name", name)
  await until(() => store.ready())
})
