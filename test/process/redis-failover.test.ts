import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import t, { type Test } from "tap"
import { type RedisServer, startRedis } from "../fixtures/redis.ts"
import { until } from "../fixtures/until.ts"
import { chat, closed, credits, ledgerFindings, redisStore, right, serve, siteOf } from "./serve.ts"

/** An address that moves, as a service's or a proxy's does: new connections go to the new place, old ones stay. */
const movingAddress = async (t: Test, first: number) => {
  const sockets = new Set<Socket>()
  let to = first
  const server = createServer(near => {
    const far = connect(to, "127.0.0.1")
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on("error", () => other.destroy())
      one.on("close", () => other.destroy())
      one.pipe(other)
    }
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const move = (port: number): void => {
    to = port
  }
  return { port: (server.address() as AddressInfo).port, move }
}

const offset = async (server: RedisServer, name: string): Promise<string | undefined> =>
  new RegExp(`${name}:(\\d+)`).exec(await server.ask("INFO", "replication"))?.[1]

const ways = [
  { what: "a master that died", leave: (master: RedisServer) => master.kill() },
  {
    what: "a master that became a replica, its connections open",
    leave: (master: RedisServer, replica: RedisServer) => master.ask("REPLICAOF", "127.0.0.1", String(replica.port)),
  },
]

for (const { what, leave } of ways)
  t.test(`after ${what} the gateway finds the new one, and what was copied is there once`, async t => {
    const master = await startRedis(t, { options: ["--repl-diskless-sync-delay", "0"] })
    const replica = await startRedis(t, { options: ["--replicaof", "127.0.0.1", String(master.port)] })
    const copied = async (): Promise<boolean> => {
      const [there, here] = await Promise.all([
        offset(master, "master_repl_offset"),
        offset(replica, "slave_repl_offset"),
      ])
      return there !== undefined && there === here
    }
    const address = await movingAddress(t, master.port)
    const site = siteOf(t, redisStore())
    const env = { REDIS_URL: `redis://127.0.0.1:${address.port}` }
    const gateway = await serve(t, site, { env })
    let micros = 0
    for (let at = 0; at < 20; at += 1) micros += (await chat(gateway)).micros
    await until(copied)
    await replica.ask("REPLICAOF", "NO", "ONE")
    address.move(replica.port)
    await leave(master, replica)
    let more = 0
    await until(async () => {
      const answer = await chat(gateway)
      if (answer.status !== 200) closed(t, answer)
      more += answer.micros
      return answer.status === 200
    })
    const { balance, held } = await credits(gateway)
    t.same([Math.round((1_000_000 - balance) * 1_000_000), held], [micros + more, 0])
    t.same(await ledgerFindings(site, env), right)
  })
