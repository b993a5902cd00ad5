import { randomUUID } from "node:crypto"
import t from "tap"
import { openRedis } from "../../core/state/redis.ts"
import { startRedisCluster } from "../fixtures/redis.ts"
import { alice, dayOf, directoryContract, life, moneyContract, usageContract } from "../fixtures/store-contract.ts"
import { until } from "../fixtures/until.ts"

t.test("three masters share the members", async t => {
  const { url } = await startRedisCluster(t)
  const open: Parameters<typeof moneyContract>[1] = (_, given) =>
    openRedis({ ...given, url, cluster: true, prefix: `t-${randomUUID()}`, deadlineMs: 5_000, serverTime: false })
  moneyContract(t, open)
  usageContract(t, open)
  directoryContract(t, open)
})

t.test("opening while the whole cluster is down does not fail; it is taken when it comes", async t => {
  const { url, nodes } = await startRedisCluster(t)
  await Promise.all(nodes.map(node => node.kill()))
  const store = await openRedis({
    url,
    cluster: true,
    prefix: "t",
    deadlineMs: 2_000,
    now: Date.now,
    day: dayOf,
    holdLifeMs: life,
  })
  t.teardown(() => store.close())
  t.notOk(store.ready())
  await t.rejects(store.accounts.grant("g", alice, 5, "gift"), { code: "store_unavailable" })
  await Promise.all(nodes.map(node => node.restart()))
  const granted = () => store.accounts.grant("g", alice, 5, "gift").then(({ granted }) => granted === 5)
  await until(() => granted().catch(() => false))
  t.ok(store.ready())
})
