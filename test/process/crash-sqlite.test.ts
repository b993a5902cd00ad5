import t from "tap"
import { crashOnSqlite } from "../load/crash-stores.ts"

t.test("killed at any moment, the embedded store keeps every charge that a client saw, once", async t => {
  const seed = Date.now() % 1_000_000
  const report = await crashOnSqlite({ points: 30, seed })
  t.same(report.wrong, [], `seed ${seed}`)
  t.ok(report.seen > 0, `${report.seen} charges were seen, ${report.charged} stand in the ledger`)
})
