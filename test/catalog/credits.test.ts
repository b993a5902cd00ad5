import fc from "fast-check"
import t from "tap"
import { credits, micros } from "../../core/index.ts"

t.test("credits and micros name the same amount", async () => {
  fc.assert(
    fc.property(
      fc.nat(2 ** 31 - 1),
      fc.nat(999_999),
      (whole, rest) => micros(credits(whole * 1_000_000 + rest)) === whole * 1_000_000 + rest,
    ),
  )
})

t.test("an amount is read by its decimal digits", async t => {
  t.equal(micros(0.29), 290_000)
  t.equal(micros(1.005), 1_005_000)
  t.equal(micros(4.35), 4_350_000)
  t.equal(micros(1e-6), 1)
  t.equal(micros(0), 0)
  t.equal(credits(1_234_567), 1.234567)
})

t.test("what is no amount is refused", async t => {
  for (const odd of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e-7, 0.1234567, 1e300, 1e10])
    t.throws(() => micros(odd), RangeError)
})
