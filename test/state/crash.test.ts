import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import t from "tap"
import { checkLedger } from "../../core/money/check.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Store } from "../../core/state/store.ts"
import { alice, dayOf, life } from "../fixtures/store-contract.ts"

const program = fileURLToPath(new URL("../fixtures/charging.ts", import.meta.url))

/** What the process said that was confirmed before it was killed, after some bytes of output. */
const killed = async (path: string, name: string, afterBytes: number): Promise<readonly string[]> => {
  const child = spawn(process.execPath, [program, path, name], { stdio: ["ignore", "pipe", "inherit"] })
  let output = ""
  child.stdout.setEncoding("utf8").on("data", chunk => {
    output += chunk
    if (output.length >= afterBytes) child.kill("SIGKILL")
  })
  await once(child, "close")
  return output.split("\n").slice(0, -1) // the last line may be cut
}

const chargedIds = async (store: Store): Promise<ReadonlySet<string>> => {
  const ids = new Set<string>()
  for (let after = 0; ; ) {
    const rows = await store.accounts.entries(alice, { after, limit: 1_000 })
    for (const row of rows) if (row.kind === "charge") ids.add(row.id)
    if (rows.length === 0) return ids
    after = rows.at(-1)!.sequence
  }
}

t.test("a killed gateway loses nothing that was confirmed, and its holds are free again", async t => {
  const path = join(t.testdir(), "store.db")
  const confirmed: string[] = []
  for (const [at, bytes] of [1, 2_000, 9_000].entries()) {
    confirmed.push(...(await killed(path, `run${at}`, bytes)))
    const store = await openSqlite({ path, durability: "process", now: Date.now, day: dayOf, holdLifeMs: life })
    const charged = await chargedIds(store)
    t.same(
      confirmed.filter(id => !charged.has(id)),
      [],
    )
    const { granted, available, held, spent } = await store.accounts.balance(alice)
    t.same([granted, held, spent, available], [1_000_000_000, 0, 7 * charged.size, granted - spent])
    for await (const finding of checkLedger(store)) t.fail(finding.message)
    await store.close()
  }
  t.ok(confirmed.length > 24)
})
