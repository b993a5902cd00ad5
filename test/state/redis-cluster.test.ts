import { randomUUID } from "node:crypto"
import t from "tap"
import { openRedis } from "../../core/state/redis.ts"
import { startRedisCluster, startReplica } from "../fixtures/redis.ts"
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

t.test("a master that says nothing any more is left for the replica that took its place", async t => {
  const { url, nodes } = await startRedisCluster(t)
  const silent = nodes[2]!
  const replica = await startReplica(t, silent)
  // Else the other nodes would speak of a cluster that is down, and so of a change.
  for (const node of [...nodes, replica]) await node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
  const known = async (node: (typeof nodes)[number]) =>
    (await node.ask("CLUSTER", "NODES")).includes(`:${replica.port}@`)
  for (const node of nodes) await until(() => known(node))
  const store = await openRedis({
    url,
    cluster: true,
    prefix: "t",
    deadlineMs: 300,
    now: Date.now,
    day: dayOf,
    holdLifeMs: life,
  })
  t.teardown(() => store.close())
  const everybody = Array.from({ length: 12 }, (_, at) => ({ organisation: "acme", member: `m${at}` }))
  for (const member of everybody) await store.accounts.grant("g", member, 5, "gift")
  silent.pause()
  t.teardown(() => silent.resume())
  const granted = () =>
    Promise.all(everybody.map(member => store.accounts.balance(member).then(({ granted }) => granted)))
  await t.rejects(granted(), { code: "store_unavailable" })
  await until(async () => (await replica.ask("INFO", "replication")).includes("role:master"))
  await until(() =>
    granted()
      .then(all => all.every(one => one === 5))
      .catch(() => false),
  )
})
