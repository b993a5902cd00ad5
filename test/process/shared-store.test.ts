import t, { type Test } from "tap"
import { startRedis } from "../fixtures/redis.ts"
import { type GatewayProcess, memberKey, model, organisation, processCatalog, type Tree } from "./gateway-process.ts"
import { call, chat, countBy, credits, ledgerFindings, redisStore, right, serve, siteOf } from "./serve.ts"

const flat = model("openai", { requests: "2 per requests" })
const catalog = { models: { ...(processCatalog.models as Tree), flat } }
const guards = ["metrics", "edge", "auth", "rate-limit", "model", "pricing"]

/** Two gateways on one Redis, with the members of the test. */
const pair = async (t: Test, members: Tree, change: Tree = {}) => {
  const redis = await startRedis(t)
  const site = siteOf(t, { ...redisStore(), bootstrap: organisation(members), ...change }, catalog)
  const env = { REDIS_URL: redis.url }
  const gateways = await Promise.all([serve(t, site, { env }), serve(t, site, { env })])
  return { gateways, check: () => ledgerFindings(site, env) }
}

const either = (gateways: readonly GatewayProcess[], at: number): GatewayProcess => gateways[at % 2] as GatewayProcess

t.test("a member's keys and all gateways share one limit: of 240 calls exactly 120 pass", async t => {
  const keys = [memberKey(1), memberKey(2), memberKey(3)]
  const { gateways } = await pair(t, { alice: { credits: 1, keys } }, { plugins: guards })
  const answers = await Promise.all(
    Array.from({ length: 240 }, (_, at) => call(either(gateways, at), "/credits/", { key: keys[at % 3] as string })),
  )
  t.same(
    countBy(answers, ({ status }) => status),
    { 200: 120, 429: 120 },
  )
  for (const { status, headers } of answers)
    if (status === 429) t.match(headers.get("retry-after"), /^([1-9]|[1-5]\d|60)$/)
})

t.test("the last credits are spent once: 200 calls at two gateways, money for ten", async t => {
  const { gateways, check } = await pair(t, { alice: { credits: 20, keys: [memberKey(1)] } })
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, at) => chat(either(gateways, at), { model: "flat" })),
  )
  t.same(
    countBy(answers, ({ status }) => status),
    { 200: 10, 402: 190 },
  )
  t.equal(
    answers.reduce((sum, { micros }) => sum + micros, 0),
    20_000_000,
  )
  for (const gateway of gateways) t.match(await credits(gateway), { balance: 0, held: 0, available: 0 })
  t.same(await check(), right)
})

t.test("calls that fail at the vendor give their credits back to those that wait for them", async t => {
  const { gateways, check } = await pair(t, { alice: { credits: 20, keys: [memberKey(1)] } })
  const broken = (at: number) =>
    fetch(`${either(gateways, at).url}/chat/completions/`, {
      method: "POST",
      headers: { authorization: `Bearer ${memberKey(1)}`, "x-sandbox-fault": at % 3 === 0 ? "500" : "none" },
      body: JSON.stringify({ model: "flat", messages: [{ role: "user", content: "hi" }] }),
    }).then(async answer => {
      await answer.text()
      return answer.status
    })
  const statuses = await Promise.all(Array.from({ length: 60 }, (_, at) => broken(at)))
  const paid = statuses.filter(status => status === 200).length
  t.ok(paid <= 10, `${paid} were answered`)
  const { balance, held, available } = await credits(gateways[0] as GatewayProcess)
  t.same([balance, held, available], [20 - 2 * paid, 0, 20 - 2 * paid])
  t.same(await check(), right)
})

t.test("a key revoked at one gateway is refused by the other on the next call", async t => {
  const keys = Array.from({ length: 1_000 }, (_, at) => memberKey(at))
  const { gateways } = await pair(t, { alice: { credits: 1, keys } })
  for (const [at, key] of keys.entries()) {
    t.equal((await call(either(gateways, at + 1), "/credits/", { key })).status, 200)
    t.equal((await call(either(gateways, at), "/keys/revoke/", { key, body: {} })).status, 200)
    const refused = await call(either(gateways, at + 1), "/credits/", { key })
    t.equal(refused.status, 401)
    t.match(JSON.parse(refused.text), { detail: "This API key has been revoked. Create a new key in the console." })
  }
})
