import t from "tap"
import { startRedis } from "../fixtures/redis.ts"
import { crashOnRedis, crashOnSqlite } from "../load/crash-stores.ts"

const points = 30

t.test("killed at any moment, the embedded store keeps every charge that a client saw, once", async t => {
  const seed = Date.now() % 1_000_000
  const report = await crashOnSqlite({ points, seed })
  t.same(report.wrong, [], `seed ${seed}`)
  t.ok(report.seen > 0, `${report.seen} charges were seen, ${report.charged} stand in the ledger`)
})

t.test("killed at any moment, a shared store does too, and holds of the dead lapse", async t => {
  const redis = await startRedis(t)
  const seed = Date.now() % 1_000_000
  const report = await crashOnRedis(redis.url, { points, seed })
  t.same(report.wrong, [], `seed ${seed}`)
  t.ok(report.seen > 0 && report.heldOver > 0, `${report.seen} charges were seen, ${report.heldOver} holds left over`)
})
