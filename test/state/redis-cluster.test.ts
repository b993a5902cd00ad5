import { randomUUID } from "node:crypto"
import t from "tap"
import { openRedis } from "../../core/state/redis.ts"
import { startRedisCluster } from "../fixtures/redis.ts"
import { directoryContract, moneyContract, usageContract } from "../fixtures/store-contract.ts"

t.test("three masters share the members", async t => {
  const { url } = await startRedisCluster(t)
  const open: Parameters<typeof moneyContract>[1] = (_, given) =>
    openRedis({ ...given, url, cluster: true, prefix: `t-${randomUUID()}`, deadlineMs: 5_000, serverTime: false })
  moneyContract(t, open)
  usageContract(t, open)
  directoryContract(t, open)
})
