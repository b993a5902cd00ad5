import t from "tap"
import { startRedis } from "../fixtures/redis.ts"
import { crashOnRedis } from "../load/crash-stores.ts"

t.test("killed at any moment, a shared store keeps every charge, once, and holds of the dead lapse", async t => {
  const redis = await startRedis(t)
  const seed = Date.now() % 1_000_000
  const report = await crashOnRedis(redis.url, { points: 30, seed })
  t.same(report.wrong, [], `seed ${seed}`)
  t.ok(report.seen > 0 && report.heldOver > 0, `${report.seen} charges were seen, ${report.heldOver} holds left over`)
})
