/** What the store costs per call, verb by verb, in groups of 32 calls at once: `node bench/state.ts [redis url]`. */

import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as turn } from "node:timers/promises"
import { openRedis } from "../core/state/redis.ts"
import { openSqlite } from "../core/state/sqlite.ts"
import type { ChargeDetail, MemberRef, Store, StoreOptions } from "../core/state/store.ts"

const members = 5_000
const atOnce = 32
const rounds = 1_000
const calls = rounds * atOnce

const options: StoreOptions = {
  now: () => Date.now(),
  day: at => new Date(at).toISOString().slice(0, 10),
  holdLifeMs: 300_000,
}

const memberAt = (at: number): MemberRef => ({ organisation: "bench", member: `m${at % members}` })
const digestOf = (at: number): string =>
  createHash("sha256")
    .update(`key ${at % members}`)
    .digest("hex")
const detail: ChargeDetail = {
  key: "k1",
  model: "some-model",
  kind: "llm",
  route: "/chat/completions/",
  priceDigest: "0123456789ab",
  usage: { input: 250, output: 120, cache_read: 40 },
  source: "vendor",
}

const fill = async ({ directory, accounts }: Store): Promise<void> => {
  await directory.createOrganisation({ name: "bench", title: "Bench", gateway: true, models: "all", disabled: [] })
  for (let from = 0; from < members; from += 500) {
    await Promise.all(
      Array.from({ length: 500 }, async (_, at) => {
        const member = memberAt(from + at)
        const key = { id: `key-${from + at}`, name: "", state: "valid", createdAt: 0, ...member } as const
        await directory.createKey(key, digestOf(from + at))
        await accounts.grant("first", member, 1e12, "bench")
      }),
    )
  }
}

const measure = async (name: string, verb: (at: number) => Promise<unknown>): Promise<void> => {
  await timed(name, async () => {
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(Array.from({ length: atOnce }, (_, at) => verb(round * atOnce + at)))
    }
  })
}

const timed = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  const cpu = process.cpuUsage()
  const started = performance.now()
  await work()
  const { user, system } = process.cpuUsage(cpu)
  const wall = ((performance.now() - started) * 1_000) / calls
  console.log(
    `  ${name.padEnd(10)} ${wall.toFixed(2).padStart(8)} us wall ${((user + system) / calls).toFixed(2).padStart(8)} us CPU`,
  )
}

/** Whole calls as the gateway makes them: 64 clients, each its four verbs one after the other, some turns apart. */
const measureCalls = async (store: Store, digests: readonly string[]): Promise<void> => {
  let next = 0
  const client = async (): Promise<void> => {
    for (let at = next++; at < calls; at = next++) {
      const member = memberAt(at)
      await store.directory.identify(digests[at % members]!)
      await store.windows.hit("common", member, { requests: 120, windowMs: 60_000 })
      await store.accounts.hold({ id: `whole-${at}`, member, micros: 5_000, least: 10 })
      for (let turns = at % 8; turns >= 0; turns -= 1) await turn()
      await store.accounts.settle({ id: `whole-${at}`, member, micros: 1_234, detail })
    }
  }
  await timed("whole call", () => Promise.all(Array.from({ length: 64 }, client)))
}

const run = async (name: string, store: Store): Promise<void> => {
  console.log(name)
  await fill(store)
  const digests = Array.from({ length: members }, (_, at) => digestOf(at))
  await measure("identify", at => store.directory.identify(digests[at % members]!))
  await measure("window", at => store.windows.hit("common", memberAt(at), { requests: 120, windowMs: 60_000 }))
  await measure("hold", at => store.accounts.hold({ id: `call-${at}`, member: memberAt(at), micros: 5_000, least: 10 }))
  await measure("settle", at =>
    store.accounts.settle({ id: `call-${at}`, member: memberAt(at), micros: 1_234, detail }),
  )
  await measureCalls(store, digests)
  await store.close()
}

const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"))
for (const durability of ["process", "power"] as const) {
  await run(
    `sqlite, ${durability}`,
    await openSqlite({ path: join(folder, `${durability}.db`), durability, ...options }),
  )
}
rmSync(folder, { recursive: true })

const url = process.argv[2]
if (url !== undefined) {
  const store = await openRedis({ url, cluster: false, prefix: `bench-${process.pid}`, deadlineMs: 2_000, ...options })
  await run("redis", store)
}
