/**
 * Mixed traffic with faults for a long time: what grows, and how late the event loop gets.
 * `npm run soak -- --minutes 30 --rate 100 --seed 1 [--redis redis://...]`
 */

import { readdirSync, readFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { keyDigest } from "../fixtures/client.ts"
import {
  makeSite,
  memberKey,
  organisation,
  processGateway,
  startGatewayProcess,
  tollgate,
  vendorsAt,
} from "../process/gateway-process.ts"
import { startFaultyVendors } from "./faulty-vendors.ts"
import { numberAfter, randomOf } from "./random.ts"
import { keepCalling } from "./traffic.ts"

const minutes = numberAfter("minutes", 30)
const perSecond = numberAfter("rate", 100)
const seed = numberAfter("seed", 1)
const sampleMs = 5_000
/** Caches fill, code is compiled: the first third, five minutes at most, is not judged. */
const warmUpMs = Math.min(minutes * 20_000, 300_000)

interface Sample {
  readonly atMs: number
  readonly residentMb: number
  readonly heapMb: number
  /** Buffers, outside the heap. */
  readonly externalMb: number
  readonly lagP99Ms: number
  readonly handles: number
  readonly descriptors: number
}

const redis = process.argv.indexOf("--redis")
const store =
  redis < 0 ? {} : { store: { kind: "redis", url: { env: "REDIS_URL" }, prefix: `soak-${Date.now()}`, deadline: "2s" } }
const random = randomOf(seed)
const vendors = await startFaultyVendors(random, 5)
const quick = { connect: "2s", first_byte: "3s", idle: "3s" }
const site = makeSite(
  processGateway({
    ...store,
    sandbox: false,
    vendors: Object.fromEntries(
      Object.entries(vendorsAt(vendors.origin)).map(([name, one]) => [
        name,
        { ...(one as object), timeouts: quick, secrets: [{ env: "VENDOR_KEY", name: "first" }] },
      ]),
    ),
    bootstrap: organisation({ alice: { credits: 100_000_000, keys: [keyDigest(memberKey(1))] } }),
  }),
)
const env = { VENDOR_KEY: "soak", ...(redis < 0 ? {} : { REDIS_URL: process.argv[redis + 1] ?? "" }) }
const gateway = await startGatewayProcess(site.file, { env })

const statusMb = (name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${gateway.pid}/status`, "latin1"))?.[1]) / 1024

const metric = (text: string, name: string): number =>
  [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, "gm"))].reduce((sum, one) => sum + Number(one[1]), 0)

const scrape = async (): Promise<string> => (await fetch(`${gateway.ops}/metrics`)).text()

const sample = async (began: number): Promise<Sample> => {
  const text = await scrape()
  return {
    atMs: performance.now() - began,
    residentMb: statusMb("VmRSS"),
    heapMb: metric(text, "nodejs_heap_size_used_bytes") / 2 ** 20,
    externalMb: metric(text, "nodejs_external_memory_bytes") / 2 ** 20,
    lagP99Ms: metric(text, "nodejs_eventloop_lag_p99_seconds") * 1_000,
    handles: metric(text, "nodejs_active_handles_total"),
    descriptors: readdirSync(`/proc/${gateway.pid}/fd`).length,
  }
}

/** Least squares: units of `value` per minute. */
const slope = (samples: readonly Sample[], value: (one: Sample) => number): number => {
  const x = samples.map(({ atMs }) => atMs / 60_000)
  const y = samples.map(value)
  const mean = (all: readonly number[]): number => all.reduce((sum, one) => sum + one, 0) / all.length
  const [middleX, middleY] = [mean(x), mean(y)]
  const top = x.reduce((sum, one, at) => sum + (one - middleX) * ((y[at] as number) - middleY), 0)
  const bottom = x.reduce((sum, one) => sum + (one - middleX) ** 2, 0)
  return bottom === 0 ? 0 : top / bottom
}

const began = performance.now()
const samples: Sample[] = []
const counts = new Map<string, number>()
const died = new AbortController()
const stop = AbortSignal.any([AbortSignal.timeout(minutes * 60_000), died.signal])
void gateway.ended.then(() => died.abort())
const calling = keepCalling({ url: gateway.url, key: memberKey(1) }, { random, perSecond, most: 200, stop }, seen => {
  const name = `${seen.kind} ${seen.status}`
  counts.set(name, (counts.get(name) ?? 0) + 1)
})
while (!stop.aborted) {
  await setTimeout(Math.min(sampleMs, Math.max(1, minutes * 60_000 - (performance.now() - began))))
  if (died.signal.aborted) break
  samples.push(await sample(began))
  const { residentMb, heapMb, lagP99Ms, handles } = samples.at(-1) as Sample
  console.error(
    `${(samples.at(-1)!.atMs / 60_000).toFixed(1)} min  resident ${residentMb.toFixed(0)} MB  heap ${heapMb.toFixed(0)} MB  lag p99 ${lagP99Ms.toFixed(1)} ms  handles ${handles}`,
  )
}
await calling
if (died.signal.aborted) {
  console.error(`the gateway ended by itself: ${gateway.complaints.join("\n")}\n${gateway.errors()}`)
  process.exit(1)
}
await setTimeout(15_000) // drains of left streams end within ten seconds
const rest = await sample(began)
const open = metric(await scrape(), "tollgate_ledger_holds")
gateway.signal("SIGTERM")
const code = await gateway.ended
const ledger = await tollgate(site.file, ["ledger", "check"], env)
await vendors.close()
site.remove()

const judged = samples.filter(({ atMs }) => atMs >= warmUpMs)
const calls = [...counts.values()].reduce((sum, one) => sum + one, 0)
const lags = judged.map(({ lagP99Ms }) => lagP99Ms).toSorted((a, b) => a - b)
const report = {
  minutes,
  seed,
  calls,
  residentSlopeMbPerMinute: slope(judged, one => one.residentMb),
  heapSlopeMbPerMinute: slope(judged, one => one.heapMb),
  externalSlopeMbPerMinute: slope(judged, one => one.externalMb),
  residentMb: { first: judged[0]?.residentMb, last: judged.at(-1)?.residentMb, atRest: rest.residentMb },
  lagP99Ms: { median: lags[lags.length >> 1], worst: lags.at(-1) },
  atRest: { handles: rest.handles, descriptors: rest.descriptors, holds: open },
  handlesSlopePerMinute: slope(judged, one => one.handles),
  warnings: gateway.errors(),
  exit: code,
  ledger: ledger.text.trim(),
  seen: Object.fromEntries([...counts].toSorted()),
  faults: Object.fromEntries(vendors.faults),
}
console.log(JSON.stringify(report, null, 2))
const flat =
  report.residentSlopeMbPerMinute < 1 && open === 0 && gateway.errors() === "" && ledger.code === 0 && code === 0
process.exitCode = flat ? 0 : 1
