import { writeFileSync } from "node:fs"
import t, { type Test } from "tap"
import { type RedisServer, startRedis } from "../fixtures/redis.ts"
import { until } from "../fixtures/until.ts"
import { type GatewayProcess, memberKey, type Site, type Tree, tollgate } from "./gateway-process.ts"
import { call, chat, closed, credits, ledgerFindings, redisStore, right, serve, siteOf } from "./serve.ts"

interface Opened {
  readonly redis: RedisServer
  readonly site: Site
  readonly gateway: GatewayProcess
  readonly check: () => Promise<unknown>
}

const open = async (t: Test, started = true, change: Tree = {}): Promise<Opened> => {
  const redis = await startRedis(t, { started })
  const site = siteOf(t, { ...redisStore(), ...change })
  const env = { REDIS_URL: redis.url }
  const gateway = await serve(t, site, { env })
  return { redis, site, gateway, check: () => ledgerFindings(site, env) }
}

const readiness = ({ ops }: GatewayProcess): Promise<number> => fetch(`${ops}/readyz`).then(({ status }) => status)

const served = (gateway: GatewayProcess) => async (): Promise<boolean> => (await chat(gateway)).status === 200

const changes = ({ lines }: GatewayProcess): readonly string[] =>
  lines.flatMap(line => /"msg":"(the store (?:answers|does not answer))"/.exec(line)?.[1] ?? [])

/** Calls without a pause; the sum of what their clients saw charged. */
const underLoad = (gateway: GatewayProcess) => {
  let micros = 0
  const statuses = new Set<number>()
  let over = false
  const caller = async (): Promise<void> => {
    while (!over) {
      const answer = await chat(gateway)
      statuses.add(answer.status)
      micros += answer.micros
    }
  }
  const calling = Promise.all([caller(), caller(), caller(), caller()])
  const stop = async () => {
    over = true
    await calling
    return { micros, statuses }
  }
  return { stop, statuses }
}

t.test("a gateway starts without its store, refuses with 503, and serves when it comes", async t => {
  const { redis, gateway, check } = await open(t, false)
  t.equal(await readiness(gateway), 503)
  closed(t, await chat(gateway))
  closed(t, await call(gateway, "/models/"))
  closed(t, await call(gateway, "/models/", { key: "tg_nobody" }))
  const statuses = new Set<number>()
  const first = until(async () => {
    const ready = await readiness(gateway)
    const { status } = await chat(gateway)
    statuses.add(status)
    if (ready === 200) t.equal(status, 200, "ready means served")
    return status === 200
  })
  await redis.restart()
  await first
  t.same([...statuses], [503, 200], "a key that the configuration names is never told to be invalid")
  t.equal(await readiness(gateway), 200)
  t.equal((await call(gateway, "/models/", { key: "tg_nobody" })).status, 401)
  t.same(await check(), right)
})

t.test("while Redis is stopped every call with a key is refused; after it all charges are right", async t => {
  const { redis, gateway, check } = await open(t)
  const load = underLoad(gateway)
  await until(() => load.statuses.has(200))
  redis.pause()
  await until(() => load.statuses.has(503))
  closed(t, await chat(gateway))
  closed(t, await call(gateway, "/credits/"))
  t.equal((await fetch(`${gateway.ops}/healthz`)).status, 200)
  t.equal(await readiness(gateway), 503)
  redis.resume()
  await until(served(gateway))
  const { micros, statuses } = await load.stop()
  t.same([...statuses].toSorted(), [200, 503])
  await until(async () => (await credits(gateway)).held === 0)
  await until(() => changes(gateway).length > 2) // the log is written in pieces
  t.same(
    changes(gateway),
    ["the store answers", "the store does not answer", "the store answers"],
    "one line per change",
  )
  const spent = Math.round((1_000_000 - (await credits(gateway)).balance) * 1_000_000)
  t.ok(spent >= micros, `${spent} spent, ${micros} seen`)
  t.same(await check(), right)
})

t.test("Redis killed and restarted, again and again: no charge is lost or made twice", async t => {
  const { redis, gateway, check } = await open(t)
  const load = underLoad(gateway)
  for (let round = 0; round < 3; round += 1) {
    await until(served(gateway))
    await redis.kill()
    closed(t, await chat(gateway))
    await redis.restart()
    await until(served(gateway))
  }
  const { micros } = await load.stop()
  await until(async () => (await credits(gateway)).held === 0)
  const usage = JSON.parse((await call(gateway, "/usage/?scope=member")).text)
  const spent = Math.round((1_000_000 - (await credits(gateway)).balance) * 1_000_000)
  t.ok(spent >= micros, `${spent} spent, ${micros} seen`)
  t.equal(Math.round(usage.total.credits * 1_000_000), spent)
  t.same(await check(), right)
})

t.test("scripts that Redis forgot are taught again, and no call fails", async t => {
  const { redis, gateway, check } = await open(t)
  const load = underLoad(gateway)
  for (let round = 0; round < 20; round += 1) {
    t.equal(await redis.ask("SCRIPT", "FLUSH"), "+OK")
    t.equal((await chat(gateway)).status, 200)
  }
  t.same([...(await load.stop()).statuses], [200])
  t.same(await check(), right)
})

t.test("a key revoked before the restart stays revoked", async t => {
  const { redis, gateway } = await open(t)
  t.equal((await call(gateway, "/keys/revoke/", { body: {} })).status, 200)
  await redis.kill()
  await redis.restart()
  const refused = async (): Promise<boolean> => {
    const { status } = await call(gateway, "/credits/", { key: memberKey(1) })
    t.not(status, 200)
    return status === 401
  }
  await until(refused)
})

/** A stream was heard to its end, and its charge waits for a Redis that is away. */
const openUncharged = async (t: Test, shutdown: string) => {
  const opened = await open(t, true, { shutdown })
  const { redis, gateway, site } = opened
  const answer = await fetch(`${gateway.url}/chat/completions/`, {
    method: "POST",
    headers: { authorization: `Bearer ${memberKey(1)}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt", stream: true, messages: [{ role: "user", content: "Count to 40" }] }),
  })
  await redis.kill()
  t.match(await answer.text(), /data: \[DONE\]/)
  return {
    ...opened,
    /** What the log tells is enough to charge it, once. */
    async chargedLater() {
      const told = gateway.complaints.find(line => line.includes("has not confirmed a charge")) ?? "{}"
      const { id, organisation, member, micros } = JSON.parse(told)
      t.same(
        { id, organisation, member },
        { id: answer.headers.get("x-request-id"), organisation: "acme", member: "alice" },
      )
      t.ok(micros > 0, `${micros} micros`)
      await redis.restart()
      const log = `${site.file}.log`
      writeFileSync(log, gateway.lines.join("\n"))
      const settle = async (): Promise<unknown> =>
        JSON.parse((await tollgate(site.file, ["ledger", "settle", log], { REDIS_URL: redis.url })).text)
      const charged = { organisation: "acme", member: "alice", id, charged: micros / 1e6, shortfall: 0 }
      t.same(await settle(), [{ ...charged, repeated: false }])
      t.same(await settle(), [{ ...charged, repeated: true }])
      t.same(await opened.check(), right)
    },
  }
}

t.test(
  "told to end while Redis is away, a gateway ends, with 1, and its log is enough to write the charge later",
  async t => {
    const { gateway, chargedLater } = await openUncharged(t, "1s")
    gateway.signal("SIGTERM")
    await until(() => gateway.child.exitCode !== null)
    t.equal(await gateway.ended, 1)
    t.match(gateway.lines.join("\n"), /"charges":1,"releases":0,.*waiting for the store/)
    await chargedLater()
  },
)

t.test("told twice, it waits no longer, and its log is enough just the same", async t => {
  const { gateway, chargedLater } = await openUncharged(t, "60s")
  await until(() => {
    gateway.signal("SIGTERM") // what comes within a second of the first is its echo
    return gateway.child.exitCode !== null
  })
  t.equal(await gateway.ended, 130)
  await chargedLater()
})
