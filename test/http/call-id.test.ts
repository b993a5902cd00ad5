import t from "tap"
import { callId } from "../../core/http/call-id.ts"

t.test("an id is a UUID of version 7 whose first digits are its time", async t => {
  const at = Date.UTC(2026, 10, 21, 12)
  for (let i = 0; i < 3_000; i++) {
    const id = callId(at + i)
    t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    t.equal(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16), at + i)
  }
})

t.test("no two ids are alike, in one millisecond or over many", async t => {
  const ids = new Set(Array.from({ length: 20_000 }, (_, i) => callId(1_800_000_000_000 + Math.floor(i / 5_000))))
  t.equal(ids.size, 20_000)
})
