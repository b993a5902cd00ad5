/** `npm run crash -- --points 1000 --seed 1`: on the embedded store, then on a Redis of its own. */

import { startRedis } from "../fixtures/redis.ts"
import type { CrashReport } from "./crash.ts"
import { type Asked, crashOnRedis, crashOnSqlite } from "./crash-stores.ts"
import { numberAfter } from "./random.ts"

const points = numberAfter("points", 1_000)
const seed = numberAfter("seed", Date.now() % 1_000_000)
const everyPoints = 50

const runs: (() => void | Promise<void>)[] = []
const redis = await startRedis({ teardown: run => void runs.push(run) })

const asked = (name: string): Asked => ({
  points,
  seed,
  onPoint: (point, { calls, seen, wrong }) => {
    if (point % everyPoints === 0)
      console.error(`${name}: ${point} crashes, ${calls} calls, ${seen} charges seen, ${wrong.length} wrong`)
  },
})

const told = (name: string, report: CrashReport): void => {
  console.log(JSON.stringify({ store: name, seed, ...report }))
  if (report.wrong.length > 0) process.exitCode = 1
}

console.error(`seed ${seed}`)
try {
  told("sqlite", await crashOnSqlite(asked("sqlite")))
  told("redis", await crashOnRedis(redis.url, asked("redis")))
} finally {
  for (const run of runs) await run()
}
