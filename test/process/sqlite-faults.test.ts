import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import t, { type Test } from "tap"
import { until } from "../fixtures/until.ts"
import type { GatewayProcess, Site } from "./gateway-process.ts"
import { call, chat, closed, countBy, credits, ledgerFindings, right, serve, siteOf } from "./serve.ts"

const readiness = ({ ops }: GatewayProcess): Promise<number> => fetch(`${ops}/readyz`).then(({ status }) => status)

const open = async (
  t: Test,
  durability: string,
): Promise<{ readonly site: Site; readonly gateway: GatewayProcess }> => {
  const site = siteOf(t, { store: { kind: "sqlite", path: "./tollgate.db", durability } })
  return { site, gateway: await serve(t, site) }
}

const spentMicros = async (gateway: GatewayProcess): Promise<number> =>
  Math.round((1_000_000 - (await credits(gateway)).balance) * 1_000_000)

/** What stops writes, and what lets them go on again. */
interface Outage {
  readonly what: string
  readonly durabilities: readonly string[]
  begin(site: Site, gateway: GatewayProcess): () => void
}

const outages: readonly Outage[] = [
  {
    // As a full disk does it: every write to a file fails, reads go on.
    what: "a disk that takes no more",
    durabilities: ["process", "power"],
    begin: (_, { pid }) => {
      const limit = (bytes: string): void => void execFileSync("prlimit", [`--pid=${pid}`, `--fsize=${bytes}:`])
      limit("1")
      return () => limit("unlimited")
    },
  },
  {
    what: "a file that another program has locked",
    durabilities: ["process"],
    begin: ({ folder }) => {
      const other = new DatabaseSync(join(folder, "tollgate.db"))
      other.exec("BEGIN IMMEDIATE")
      return () => other.close()
    },
  },
]

for (const { what, durabilities, begin } of outages)
  for (const durability of durabilities)
    t.test(`${what} (${durability}) means 503, no free call, and no restart`, async t => {
      const { site, gateway } = await open(t, durability)
      const before = await chat(gateway)
      t.equal(before.status, 200)
      const end = begin(site, gateway)
      // Held before, it cannot be settled now: its answer goes out, its charge waits.
      t.equal((await chat(gateway)).status, 200)
      await until(async () => (await readiness(gateway)) === 503)
      const during = await Promise.all(Array.from({ length: 5 }, () => chat(gateway)))
      for (const answer of during) closed(t, answer)
      t.equal((await fetch(`${gateway.ops}/healthz`)).status, 200)
      end()
      await until(async () => (await readiness(gateway)) === 200)
      const after = await chat(gateway)
      t.equal(after.status, 200)
      await until(async () => (await credits(gateway)).held === 0)
      t.equal(await spentMicros(gateway), 3 * before.micros)
      t.same(await ledgerFindings(site), right)
    })

t.test("a disk that is full at the start is told in one line, and nothing is damaged", async t => {
  const site = siteOf(t)
  const gateway = await serve(t, site)
  const { micros } = await chat(gateway)
  await gateway.kill()
  const through = ["prlimit", "--fsize=1:"]
  const started = await serve(t, site, { through }).then(
    async one => {
      closed(t, await chat(one))
      await one.kill()
      return ""
    },
    error => String(error.message),
  )
  t.notMatch(started, /\n\s+at /, "no stack")
  const again = await serve(t, site)
  t.equal(await spentMicros(again), micros)
  t.same(
    countBy(await Promise.all([chat(again), chat(again)]), ({ status }) => status),
    { 200: 2 },
  )
  t.equal((await call(again, "/models/")).status, 200)
})
