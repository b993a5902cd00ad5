import t from "tap"
import { type RedisServer, startRedisCluster } from "../fixtures/redis.ts"
import { until } from "../fixtures/until.ts"
import { type GatewayProcess, memberKey, model, organisation, processCatalog, type Tree } from "./gateway-process.ts"
import { call, chat, countBy, credits, ledgerFindings, redisStore, right, serve, siteOf } from "./serve.ts"

const flat = model("openai", { requests: "2 per requests" })
const catalog = { models: { ...(processCatalog.models as Tree), flat } }
const names = Array.from({ length: 6 }, (_, at) => `member-${at}`)
const members = Object.fromEntries(names.map((name, at) => [name, { credits: 20, keys: [memberKey(at)] }]))

t.test("two gateways on three masters: last credits, revoked keys, a master that is away", async t => {
  const { url, nodes } = await startRedisCluster(t)
  const env = { REDIS_URL: url }
  const site = siteOf(t, { ...redisStore({ cluster: true }), bootstrap: organisation(members) }, catalog)
  const gateways = await Promise.all([serve(t, site, { env }), serve(t, site, { env })])
  const either = (at: number): GatewayProcess => gateways[at % 2] as GatewayProcess

  await t.test("each member's last credits are spent once", async t => {
    const answers = await Promise.all(
      Array.from({ length: 120 }, (_, at) => chat(either(at >> 3), { model: "flat" }, { key: memberKey(at % 6) })),
    )
    t.same(
      countBy(answers, ({ status }) => status),
      { 200: 60, 402: 60 },
    )
    for (const [at] of names.entries()) t.match(await credits(either(at), memberKey(at)), { held: 0, available: 0 })
    t.same(await ledgerFindings(site, env), right)
  })

  await t.test("a key revoked at one is refused by the other", async t => {
    t.equal((await call(either(0), "/keys/revoke/", { key: memberKey(5), body: {} })).status, 200)
    t.equal((await call(either(1), "/credits/", { key: memberKey(5) })).status, 401)
  })

  await t.test("while a master is away calls that need it are 503, and come back without a restart", async t => {
    const lost = nodes[2] as RedisServer
    const statuses = async (): Promise<readonly number[]> =>
      (await Promise.all(names.slice(0, 5).map((_, at) => call(either(at), "/credits/", { key: memberKey(at) })))).map(
        ({ status }) => status,
      )
    await lost.kill()
    await until(async () => (await statuses()).includes(503))
    t.same(
      (await statuses()).filter(status => status !== 200 && status !== 503),
      [],
    )
    await lost.restart()
    await until(async () => (await statuses()).every(status => status === 200))
    t.same(await ledgerFindings(site, env), right)
  })
})
