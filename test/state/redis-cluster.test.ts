import { randomUUID } from "node:crypto"
import t, { type Test } from "tap"
import { openRedis } from "../../core/state/redis.ts"
import { type RedisServer, startRedisCluster, startReplica } from "../fixtures/redis.ts"
import {
  alice,
  dayOf,
  directoryContract,
  holdOf,
  life,
  moneyContract,
  usageContract,
} from "../fixtures/store-contract.ts"
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

const openPatient = async (t: Test, url: string, onState = (_up: boolean, _cause?: unknown): void => {}) => {
  const options = {
    url,
    cluster: true,
    prefix: "t",
    deadlineMs: 400,
    now: Date.now,
    day: dayOf,
    holdLifeMs: life,
    onState,
  }
  const store = await openRedis(options)
  t.teardown(() => store.close())
  return store
}

t.test("a cluster that is down as a whole is away, with its reason, until it is up again", async t => {
  const { url, nodes } = await startRedisCluster(t)
  const told: string[] = []
  const store = await openPatient(t, url, (up, cause) => told.push(up ? "up" : String(cause)))
  await nodes[2]!.kill()
  const asked = () => store.accounts.balance(alice).catch(() => {})
  await until(async () => {
    await asked()
    return !store.ready()
  })
  t.match(told, ["up", /CLUSTERDOWN The cluster is down/])
  await nodes[2]!.restart()
  // The nodes learn it one after the other.
  await until(() =>
    store.accounts
      .grant("g", alice, 5, "gift")
      .then(() => store.ready())
      .catch(() => false),
  )
})

t.test(
  "while a member's keys lie on two nodes a hold is refused, and is not tried on when nobody waits for it",
  async t => {
    const { url, nodes } = await startRedisCluster(t)
    const store = await openPatient(t, url)
    await store.accounts.grant("g", alice, 5, "gift")
    const key = (name: string): string => `t:{acme/alice}:${name}`
    const slot = (await nodes[0]!.ask("CLUSTER", "KEYSLOT", key("account"))).slice(1)
    const owners = await Promise.all(nodes.map(node => node.ask("CLUSTER", "COUNTKEYSINSLOT", slot)))
    const from = nodes[owners.findIndex(count => count !== ":0")]!
    const to = nodes.find(node => node !== from)!
    const id = async (node: RedisServer) => (await node.ask("CLUSTER", "MYID")).split("\r\n")[1]!
    const move = (name: string) => from.ask("MIGRATE", "127.0.0.1", String(to.port), key(name), "0", "1000")
    await to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", await id(from))
    await from.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", await id(to))
    t.equal(await move("ids"), "+OK")
    await t.rejects(store.accounts.hold(holdOf("a", 5)), { cause: { message: /^Too many Cluster redirections/ } })
    for (const name of ["account", "entries"]) t.equal(await move(name), "+OK")
    for (const node of [to, from]) await node.ask("CLUSTER", "SETSLOT", slot, "NODE", await id(to))
    const held = () => store.accounts.hold(holdOf("b", 5)).then(({ state }) => state === "held")
    await until(() => held().catch(() => false))
    t.match(await store.accounts.balance(alice), { granted: 5, available: 0, held: 5 })
  },
)

t.test("a master that says nothing any more is left for the replica that took its place", async t => {
  const { url, nodes } = await startRedisCluster(t)
  const silent = nodes[2]!
  const replica = await startReplica(t, silent)
  // Else the other nodes would speak of a cluster that is down, and so of a change.
  for (const node of [...nodes, replica]) await node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
  const known = async (node: (typeof nodes)[number]) =>
    (await node.ask("CLUSTER", "NODES")).includes(`:${replica.port}@`)
  for (const node of nodes) await until(() => known(node))
  const store = await openPatient(t, url)
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
