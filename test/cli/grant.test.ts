/** Grants whose answers are lost on the way, with a real Redis behind a wire that drops them. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import t, { type Test } from "tap"
import { grantOnce } from "../../core/cli/grant.ts"
import { runCli } from "../../core/cli/program.ts"
import { storeUnavailable } from "../../core/state/failure.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Store } from "../../core/state/store.ts"
import { startRedis } from "../fixtures/redis.ts"
import { alice, dayOf, life, start } from "../fixtures/store-contract.ts"

/** A wire to Redis that swallows the answers to its first `count` grants, and the connection with each. */
const lossyWire = async (t: Test, redisPort: number, count: number): Promise<number> => {
  let left = count
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const redis = connect(redisPort, "127.0.0.1")
    let lost = false
    for (const socket of [client, redis]) sockets.add(socket.on("error", () => {}))
    client.on("data", data => {
      if (left > 0 && data.includes("grant-")) {
        left -= 1
        lost = true
      }
      redis.write(data)
    })
    redis.on("data", data => (lost ? client.destroy() : client.write(data)))
    client.on("close", () => redis.destroy())
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const cliOn = (t: Test, port: number) => {
  const store = `{ kind: redis, url: "redis://127.0.0.1:${port}", deadline: 2s }`
  const folder = t.testdir({
    "gateway.yaml": `sandbox: true\nstore: ${store}\nvendors: { acme: { adapter: openai, origin: "https://acme.example" } }\nplugins: []\n`,
    "catalog.yaml": "models: {}\n",
  })
  return async (...words: readonly string[]) => {
    const said = { out: [] as string[], errors: [] as string[] }
    const terminal = {
      env: {},
      print: (text: string) => void said.out.push(text),
      complain: (text: string) => void said.errors.push(text),
    }
    const code = await runCli([...words, "--config", join(folder, "gateway.yaml")], terminal)
    return { code, out: said.out.join("\n"), errors: said.errors.join("\n") }
  }
}

t.test("a grant whose answer is lost is given once", async t => {
  const redis = await startRedis(t)
  const run = cliOn(t, redis.port)
  t.equal((await run("org", "create", "north")).code, 0)
  const lossy = cliOn(t, await lossyWire(t, redis.port, 2))
  t.match(await lossy("member", "create", "north", "alice", "--credits", "5"), { code: 0, errors: "" })
  t.match(await lossy("credits", "grant", "north", "alice", "100"), { code: 0, errors: "" })
  t.match(JSON.parse((await run("credits", "show", "north", "alice", "--json")).out), { granted: 105, available: 105 })
  t.equal(JSON.parse((await run("ledger", "show", "north", "alice", "--json")).out).length, 2)
})

t.test("a grant that is repeated under its id moves nothing", async t => {
  const run = cliOn(t, (await startRedis(t)).port)
  await run("org", "create", "north")
  await run("member", "create", "north", "alice")
  for (let time = 0; time < 2; time += 1) {
    const { out } = await run("credits", "grant", "north", "alice", "7", "--id", "grant-by-hand", "--json")
    t.match(JSON.parse(out), { granted: 7 })
  }
})

/** A store that does what it is asked, and loses every answer. */
const deaf = async (t: Test): Promise<Store> => {
  const store = await openSqlite({
    path: ":memory:",
    durability: "process",
    now: () => start,
    day: dayOf,
    holdLifeMs: life,
  })
  t.teardown(() => store.close())
  const { accounts } = store
  const grant: typeof accounts.grant = async (...request) => {
    await accounts.grant(...request)
    throw storeUnavailable(new Error("Redis did not answer grant within 400 ms"))
  }
  return {
    ...store,
    accounts: Object.assign(Object.create(accounts) as typeof accounts, {
      grant,
      balance: (member: typeof alice) => accounts.balance(member),
    }),
  }
}

t.test("when the answer never comes, it is told under which id the credits may have been granted", async t => {
  const store = await deaf(t)
  const grant = { member: alice, micros: 1_500_000, reason: "gift", id: "grant-1" }
  for (let time = 0; time < 2; time += 1) {
    await t.rejects(grantOnce(store, grant, 0), {
      name: "CliError",
      message:
        "the store (sqlite) does not answer: Redis did not answer grant within 400 ms; it may have been granted under id grant-1: " +
        "see `tollgate ledger show acme alice`, or repeat with `tollgate credits grant acme alice 1.5 --id grant-1`",
    })
  }
  t.match(await store.accounts.balance(alice), { granted: 1_500_000 })
  await t.rejects(grantOnce(store, { ...grant, micros: 0.5 }, 0), RangeError, "any other failure is told as it is")
})

t.test("a store that is away is named, with the reason", async t => {
  const { port } = await startRedis(t, { started: false })
  const { code, errors } = await cliOn(t, port)("credits", "show", "north", "alice")
  t.equal(code, 1)
  t.match(errors, /^tollgate: the store \(redis\) does not answer: connect ECONNREFUSED 127\.0\.0\.1:\d+$/)
})
