import fc from "fast-check"
import t from "tap"
import { credits, creditsJson, micros } from "../../core/index.ts"

t.test("credits and micros name the same amount", async () => {
  fc.assert(
    fc.property(
      fc.nat(2 ** 31 - 1),
      fc.nat(999_999),
      (whole, rest) => micros(credits(whole * 1_000_000 + rest)) === whole * 1_000_000 + rest,
    ),
  )
})

t.test("every amount is written to JSON by its exact digits, as a number", async t => {
  const micros = fc.oneof(fc.maxSafeInteger(), fc.integer({ min: 2 ** 52, max: Number.MAX_SAFE_INTEGER }))
  fc.assert(
    fc.property(micros, amount => {
      const [, sign, whole, rest = ""] = /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(JSON.stringify(creditsJson(amount))) ?? []
      return BigInt(`${sign}${whole}${rest.padEnd(6, "0")}`) === BigInt(amount)
    }),
  )
  t.equal(JSON.stringify(creditsJson(9_007_199_254_000_001)), "9007199254.000001")
  t.equal(creditsJson(1_500_000), 1.5)
  t.equal(creditsJson(0), 0)
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
