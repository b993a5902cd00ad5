/**
 * Kills a gateway at random moments under load and looks at its store after each: nothing that a client saw may be lost,
 * nothing may be there twice, balances are the replay of their rows.
 * `npm run crash -- --points 1000 --seed 1` for both stores; a Redis of its own is started.
 */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { checkLedger } from "../../core/money/check.ts"
import type { Entry, MemberRef, Store } from "../../core/state/store.ts"
import { memberKey, type Site, startGatewayProcess } from "../process/gateway-process.ts"
import { between, randomOf } from "./random.ts"
import { anything, type Client, type Seen } from "./traffic.ts"

export interface CrashOptions {
  readonly site: Site
  readonly points: number
  readonly seed: number
  /** Opens the store beside no gateway. */
  readonly open: () => Promise<Store>
  /** Holds of dead processes may stay for their lives (they are in the shared store), or died with them (in memory). */
  readonly holdsStay: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly onPoint?: (point: number, report: CrashReport) => void
}

export interface CrashReport {
  points: number
  calls: number
  /** Charges that a client saw, in `x-credits-charged` or by the good end of a stream. */
  seen: number
  /** Rows of charges in the store. */
  charged: number
  /** Holds found open after a crash. */
  heldOver: number
  readonly wrong: string[]
}

const alice: MemberRef = { organisation: "acme", member: "alice" }
const callers = 8
/** The moment is counted in answers, so that a busy machine sees as much as an idle one, and then in milliseconds. */
const latest = { answers: 12, ms: 25 }
const pageRows = 1_000

export const crash = async (options: CrashOptions): Promise<CrashReport> => {
  const { site, points, seed, onPoint = () => {} } = options
  const random = randomOf(seed)
  const report: CrashReport = { points: 0, calls: 0, seen: 0, charged: 0, heldOver: 0, wrong: [] }
  const rows = new Map<string, Entry>()
  const promised = new Map<string, number | undefined>()
  let after = 0
  // Killed processes write no compile cache, so one that ends well fills it for all the others.
  const cache = mkdtempSync(join(tmpdir(), "tollgate-cache-"))
  const env = { ...options.env, NODE_COMPILE_CACHE: cache }
  const warm = await startGatewayProcess(site.file, { env })
  warm.signal("SIGTERM")
  await warm.ended

  for (let point = 1; point <= points; point += 1) {
    for (const seen of await killedUnderLoad(site.file, env, random)) {
      report.calls += 1
      if (seen.id !== undefined && isCharged(seen)) promised.set(seen.id, seen.micros)
    }
    const store = await options.open()
    try {
      after = await readCharges(store, after, rows)
      for (const problem of await problemsOf(store, options.holdsStay, report))
        report.wrong.push(`${point}: ${problem}`)
    } finally {
      await store.close()
    }
    for (const [id, micros] of promised) {
      const charged = rows.get(id)
      if (charged === undefined) report.wrong.push(`${point}: ${id} was seen charged and is not in the ledger`)
      else if (micros !== undefined && charged.micros !== -micros)
        report.wrong.push(`${point}: ${id} was seen at ${micros} and stands at ${-charged.micros}`)
    }
    report.seen += promised.size
    promised.clear()
    report.points = point
    report.charged = rows.size
    onPoint(point, report)
  }
  rmSync(cache, { recursive: true, force: true })
  return report
}

/** A price in the head, or a stream that ended as its vendor ended it: durable before the client could see it. */
const isCharged = ({ kind, status, micros, whole }: Seen): boolean =>
  micros !== undefined || (kind === "stream" && status === 200 && whole)

const killedUnderLoad = async (
  file: string,
  env: Readonly<Record<string, string>>,
  random: () => number,
): Promise<readonly Seen[]> => {
  const gateway = await startGatewayProcess(file, { env })
  const client: Client = { url: gateway.url, key: memberKey(1) }
  const all: Seen[] = []
  const answers = between(0, latest.answers, random)
  let killed = false
  let calling: Promise<unknown> = Promise.resolve()
  const enough = new Promise<void>(resolve => {
    const call = async (): Promise<void> => {
      while (!killed) {
        if (all.length >= answers) resolve()
        all.push(await anything(client, random))
      }
    }
    calling = Promise.all(Array.from({ length: callers }, call))
  })
  await enough
  await setTimeout(between(0, latest.ms, random))
  killed = true
  await gateway.kill()
  await calling
  return all
}

const readCharges = async (store: Store, after: number, rows: Map<string, Entry>): Promise<number> => {
  for (;;) {
    const page = await store.accounts.entries(alice, { after, limit: pageRows })
    for (const row of page) if (row.kind === "charge") rows.set(row.id, row)
    if (page.length === 0) return after
    after = page.at(-1)!.sequence
  }
}

const holdLifeMs = 300_000

const problemsOf = async (store: Store, holdsStay: boolean, report: CrashReport): Promise<readonly string[]> => {
  const problems: string[] = []
  for await (const { rule, message } of checkLedger(store)) problems.push(`rule ${rule}: ${message}`)
  const { held } = await store.accounts.balance(alice)
  const holds = (await store.accounts.holds?.(alice)) ?? []
  report.heldOver += holds.length
  if (!holdsStay && held !== 0) problems.push(`${held} micros are held by nobody`)
  for (const { id, expiresInMs } of holds)
    if (expiresInMs > holdLifeMs) problems.push(`hold ${id} lives ${expiresInMs} ms more`)
  return problems
}
