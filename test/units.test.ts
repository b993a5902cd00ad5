import t from "tap"
import { estimatedInput, objectsIn, parseDuration, parseSize } from "../core/index.ts"

t.test("durations and sizes are read as YAML writes them", async t => {
  t.same(["400ms", "60s", "1.5m", "1h", "7d"].map(parseDuration), [400, 60_000, 90_000, 3_600_000, 604_800_000])
  t.same(["1B", "64KB", "25MB", "1GB"].map(parseSize), [1, 65_536, 26_214_400, 1_073_741_824])
})

t.test("anything else is refused", async t => {
  for (const text of ["", "60", "s", "-1s", "0s", "1 s", "1MB", "1S", "1toString", "1e3s"]) {
    t.throws(() => parseDuration(text), RangeError, text)
  }
  for (const text of ["", "25", "25mb", "0B", "25M", "60s"]) t.throws(() => parseSize(text), RangeError, text)
})

t.test("the estimate counts text by three bytes and parts flat, rounded up", async t => {
  t.equal(estimatedInput({ textBytes: 0, images: 0, files: 0 }), 0)
  t.equal(estimatedInput({ textBytes: 4, images: 0, files: 0 }), 2)
  t.equal(estimatedInput({ textBytes: 3, images: 2, files: 1 }), 1 + 3200 + 3000)
})

t.test("a walk yields every object in order and leaves the client's own data alone", async t => {
  const value = { id: 1, list: [{ id: 2, schema: { id: 3 } }, [{ id: 4 }]], last: { id: 5 } }
  t.same(
    [...objectsIn(value, new Set(["schema"]))].map(one => one.id),
    [1, 2, 4, 5],
  )
})

t.test("a walk over a very long list does not overflow", async t => {
  const long = Array.from({ length: 250_000 }, () => ({}))
  t.equal([...objectsIn(long, new Set())].length, 250_000)
})
