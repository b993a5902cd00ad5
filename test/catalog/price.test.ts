import fc from "fast-check"
import t from "tap"
import { type Bucket, buckets, type PriceCard, price, type Usage } from "../../core/index.ts"
import { cardFrom } from "../fixtures/catalog.ts"

const tokens = cardFrom(`
input: 3000 per 1M tokens
cache_read: 300 per 1M tokens
output: 15000 per 1M tokens
`)

t.test("token lines are summed exactly and rounded up to one micro", async t => {
  const card = cardFrom("{ input: 0.01 per 1M tokens, output: 0.03 per 1M tokens }")
  t.equal(price(card, { usage: { input: 1 } }).micros, 1)
  t.equal(price(card, { usage: { input: 50, output: 10 } }).micros, 1, "0.5 + 0.3 micros are one micro, not two")
  t.equal(price(card, { usage: { input: 100 } }).micros, 1)
  t.equal(price(card, { usage: { input: 101 } }).micros, 2)
  t.equal(price(card, { usage: {} }).micros, 0)
})

t.test("the lines say what was counted, at which rate, and sum to the whole", async t => {
  const priced = price(tokens, { usage: { input: 1200, cache_read: 300, output: 400 } })
  t.same(priced.lines, [
    { item: "input", micros: 3_600_000, quantity: 1200, basis: "3000 credits per 1M tokens" },
    { item: "cache_read", micros: 90_000, quantity: 300, basis: "300 credits per 1M tokens" },
    { item: "output", micros: 6_000_000, quantity: 400, basis: "15000 credits per 1M tokens" },
  ])
  t.match(priced, { micros: 9_690_000, bound: "exact", unpriced: [], digest: tokens.digest })
})

t.test("caches without a line cost as input, audio as its text side, anything else is reported", async t => {
  const card = cardFrom("{ input: 1 per 1K tokens, output: 2 per 1K tokens }")
  const usage = { cache_read: 1000, cache_write_5m: 1000, cache_write_1h: 1000, audio_input: 1000, audio_output: 1000 }
  const priced = price(card, { usage: { ...usage, web_search: 3, image_output: 5, reasoning: 900 } })
  t.equal(priced.micros, 6_000_000)
  t.same(priced.unpriced, ["image_output", "web_search"])
})

t.test("a card that prices caches by input alone charges nothing for what has no line and no fallback", async t => {
  const priced = price(cardFrom("input: 1 per 1K tokens"), { usage: { output: 10, audio_output: 5 } })
  t.match(priced, { micros: 0, unpriced: ["output", "audio_output"] })
})

t.test("the first row of `when` whose conditions all hold wins, and lines it does not name stay", async t => {
  const card = cardFrom(`
input: 1000 per 1M tokens
cache_read: 100 per 1M tokens
output: 5000 per 1M tokens
when:
  - { if: { prompt: "> 200000", service_tier: priority }, input: 4000 per 1M tokens, output: 9000 per 1M tokens }
  - { if: { prompt: "> 200000" }, input: 2000 per 1M tokens }
  - { if: { service_tier: priority }, times: 2 }
  - { if: { service_tier: flex }, times: 0.5 }
`)
  const of = (usage: Usage, serviceTier?: string): number =>
    price(card, { usage, ...(serviceTier === undefined ? {} : { serviceTier }) }).micros
  t.equal(of({ input: 200_000 }), 200_000_000, "the bound itself is the lower rate")
  t.equal(of({ input: 200_001 }), 400_002_000)
  t.equal(of({ input: 100_000, cache_read: 100_001 }), 200_000_000 + 10_000_100, "the prompt counts cached tokens")
  t.equal(of({ input: 100_000, audio_input: 100_001 }), 2 * 200_001_000, "and spoken ones")
  t.equal(of({ input: 1, cache_write_5m: 100_000, cache_write_1h: 100_000 }), 400_002_000)
  t.equal(of({ input: 200_001, output: 1 }, "priority"), 800_004_000 + 9000)
  t.equal(of({ input: 100, output: 10 }, "priority"), 2 * (100_000 + 50_000))
  t.equal(of({ input: 100, output: 10 }, "flex"), (100_000 + 50_000) / 2)
  t.equal(of({ input: 100, output: 10 }, "unheard-of"), 150_000)
  const held = price(card, { usage: { input: 100, output: 10 }, dearest: true })
  t.match(held, { micros: 100 * 4000 + 10 * 9000, bound: "maximum" })
})

t.test("a row begins or ends at its bound as its operator says", async t => {
  const paid = (operator: string) => {
    const card = cardFrom(`{ input: 1 per tokens, when: [{ if: { prompt: "${operator} 10" }, input: 2 per tokens }] }`)
    return [9, 10, 11].map(input => price(card, { usage: { input } }).micros / (input * 1_000_000))
  }
  t.same(paid(">"), [1, 1, 2])
  t.same(paid(">="), [1, 2, 2])
  t.same(paid("<"), [2, 1, 1])
  t.same(paid("<="), [2, 2, 1])
})

t.test("a row may charge for what the card does not, and its factor is also that of a table", async t => {
  const more = cardFrom("{ requests: 1 per requests, when: [{ if: { service_tier: fast }, images: 3 per images }] }")
  const usage = { images: 2 }
  t.equal(price(more, { usage }).micros, 1_000_000)
  t.equal(price(more, { usage, serviceTier: "fast" }).micros, 7_000_000)
  const table = "video: { per: request, table: [mode], rows: { pro: 3 } }"
  const tiered = cardFrom(`{ ${table}, when: [{ if: { service_tier: fast }, times: 1.5 }] }`)
  const parameters = { mode: "pro" }
  t.equal(price(tiered, { parameters, usage: {} }).micros, 3_000_000)
  t.equal(price(tiered, { parameters, usage: {}, serviceTier: "fast" }).micros, 4_500_000)
})

t.test("a table and the vendor's own cost pay for whatever was used; rates only for what they name", async t => {
  const usage = { input: 5, seconds: 2 }
  const unpriced = (card: string) => price(cardFrom(card), { parameters: { mode: "pro" }, usage }).unpriced
  t.same(unpriced("video: { per: request, table: [mode], rows: { pro: 3 } }"), [])
  t.same(unpriced("{ vendor_cost: 1000 per dollar, requests: 7 per requests }"), [])
  t.same(unpriced("input: 1000 per 1M tokens"), ["seconds"])
})

t.test("a table over parameters takes the row of the values asked for", async t => {
  const first = cardFrom(`
round: credit
video:
  per: request
  table: [resolution, duration]
  rows:
    480p:  { 5: 518, 10: 1032, 15: 1546, 30: 3088 }
    720p:  { 5: 1165, 10: 2321, 15: 3476, 30: 6943 }
    1080p: { 5: 2622, 10: 5222, 15: 7822, 30: 15622 }
`)
  const expected = {
    "480p": [518, 1032, 1546, 3088],
    "720p": [1165, 2321, 3476, 6943],
    "1080p": [2622, 5222, 7822, 15622],
  }
  for (const [resolution, credits] of Object.entries(expected)) {
    for (const [index, duration] of [5, 10, 15, 30].entries()) {
      const priced = price(first, { parameters: { resolution, duration }, usage: {} })
      t.match(
        priced,
        { micros: credits[index]! * 1_000_000, bound: "exact", unpriced: [] },
        `V1 ${resolution} ${duration} s`,
      )
    }
  }
})

t.test("a table per second multiplies the row by the duration", async t => {
  const table = (a: number, b: number, c: number): PriceCard =>
    cardFrom(`video: { per: second of duration, table: [resolution], rows: { 480P: ${a}, 768P: ${b}, 1080P: ${c} } }`)
  const cards = { V14: [table(50, 80, 160), [50, 80, 160]], V15: [table(25, 40, 80), [25, 40, 80]] } as const
  for (const [label, [card, rates]] of Object.entries(cards)) {
    for (const [index, resolution] of ["480P", "768P", "1080P"].entries()) {
      for (const duration of [5, 10, 2.5]) {
        const { micros } = price(card, { parameters: { resolution, duration }, usage: { seconds: duration } })
        t.equal(micros, rates[index]! * duration * 1_000_000, `${label} ${resolution} ${duration} s`)
      }
    }
  }
})

t.test("a missing row, parameter or multiplier is `price_missing`, and no prototype answers for it", async t => {
  const card = cardFrom("video: { per: second of duration, table: [mode], rows: { pro: 3 } }")
  const tries = [
    {},
    { mode: "pro" },
    { mode: "pro", duration: "long" },
    { mode: "pro", duration: -1 },
    { mode: "pro", duration: Number.NaN },
    { mode: "PRO", duration: 1 },
    { mode: "toString", duration: 1 },
  ]
  for (const parameters of tries) {
    t.throws(() => price(card, { parameters, usage: {} }), { code: "price_missing" }, JSON.stringify(parameters))
  }
  t.throws(() => price(cardFrom("video: { per: request, table: [constructor], rows: { x: 3 } }"), { usage: {} }), {
    code: "price_missing",
  })
})

t.test("a table per image multiplies by the images that were made", async t => {
  const card = cardFrom("images_by_size: { per: image, table: [size], rows: { 1K: 37, 4K: 140 } }")
  t.equal(price(card, { parameters: { size: "4K" }, usage: { images: 3 } }).micros, 420_000_000)
  t.equal(price(card, { parameters: { size: "4K" }, usage: { images: 0 } }).micros, 0)
})

t.test("a flat price is one request unless the usage counts them", async t => {
  const card = cardFrom("requests: 2 per requests")
  t.match(price(card, { usage: { input: 50 } }), { micros: 2_000_000, unpriced: [] })
  t.equal(price(card, { usage: { requests: 3 } }).micros, 6_000_000)
})

t.test("the vendor's own cost is charged by the digits that it wrote", async t => {
  const card = cardFrom("{ vendor_cost: 1000 per dollar, requests: 7 per requests }")
  t.match(price(card, { usage: { cost_dollars: 0.007 } }), { micros: 7_000_000, bound: "exact" })
  t.equal(
    price(card, { usage: { cost_dollars: 0.1 + 0.2 } }).micros,
    300_000_001,
    "0.30000000000000004 dollars, rounded up",
  )
  t.equal(price(card, { usage: { cost_dollars: 1e-7 } }).micros, 100)
  t.equal(price(card, { usage: { cost_dollars: 0 } }).micros, 0)
  t.match(price(card, { usage: {} }), { micros: 7_000_000, bound: "approximate" }, "untold: the price per request")
  const tiered = cardFrom("{ vendor_cost: 1000 per dollar, when: [{ if: { service_tier: fast }, times: 2 }] }")
  t.match(price(tiered, { usage: {}, dearest: true }), { micros: 0, bound: "approximate" }, "no row is a maximum")
})

t.test("minutes are sixty seconds, and credits round to the nearest, halves up", async t => {
  t.equal(price(cardFrom("seconds: 6 per minute"), { usage: { seconds: 90.5 } }).micros, 9_050_000)
  const whole = cardFrom("{ round: credit, seconds: 1 per 1K seconds }")
  t.equal(price(whole, { usage: { seconds: 499 } }).micros, 0)
  t.equal(price(whole, { usage: { seconds: 500 } }).micros, 1_000_000)
  t.equal(price(whole, { usage: { seconds: 1499 } }).micros, 1_000_000)
})

t.test("a quantity that is no count earns nothing and breaks nothing", async t => {
  for (const odd of [-1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    t.equal(price(tokens, { usage: { input: odd, output: 1 } }).micros, 15_000)
  }
  t.equal(price(tokens, { usage: { input: Number.MAX_VALUE } }).micros, Number.MAX_SAFE_INTEGER)
})

// ---- properties ----

const usagesOf = (quantity: fc.Arbitrary<number>) =>
  fc.record(Object.fromEntries(buckets.map(bucket => [bucket, quantity])) as Record<Bucket, fc.Arbitrary<number>>, {
    requiredKeys: [],
  })
const usages = usagesOf(fc.oneof(fc.nat(10_000_000), fc.nat(50)))
/** Some beyond what plain numbers can sum. */
const anyUsages = usagesOf(fc.oneof(fc.nat(50), fc.nat(10_000_000), fc.maxSafeNat()))
const thousandths = fc.nat(100_000)

/** A card with random rates, and the same rates in thousandths of a credit per million tokens. */
const cards = fc.record({ input: thousandths, cache_read: thousandths, output: thousandths }).map(rates => ({
  rates,
  card: cardFrom(
    Object.entries(rates)
      .map(([item, rate]) => `${item}: ${rate / 1000} per 1M tokens`)
      .join("\n"),
  ),
}))

t.test("the price is what whole numbers say, for any rates and quantities", async () => {
  fc.assert(
    fc.property(cards, anyUsages, ({ card, rates }, usage) => {
      const count = (...names: Bucket[]): bigint => names.reduce((sum, name) => sum + BigInt(usage[name] ?? 0), 0n)
      const thousandth =
        count("input", "cache_write_5m", "cache_write_1h", "audio_input") * BigInt(rates.input) +
        count("cache_read") * BigInt(rates.cache_read) +
        count("output", "audio_output") * BigInt(rates.output)
      const micros = (thousandth + 999n) / 1000n
      const most = BigInt(Number.MAX_SAFE_INTEGER)
      return price(card, { usage }).micros === Number(micros < most ? micros : most)
    }),
    { numRuns: 1000 },
  )
})

t.test("the lines always sum to the price", async () => {
  fc.assert(
    fc.property(cards, usages, ({ card }, usage) => {
      const { micros, lines } = price(card, { usage })
      return lines.every(line => line.micros >= 0) && lines.reduce((sum, line) => sum + line.micros, 0) === micros
    }),
    { numRuns: 200 },
  )
})

t.test("more of anything never costs less", async () => {
  fc.assert(
    fc.property(cards, usages, fc.constantFrom(...buckets), fc.nat(1000), ({ card }, usage, bucket, more) => {
      const bigger = { ...usage, [bucket]: (usage[bucket] ?? 0) + more }
      return price(card, { usage: bigger }).micros >= price(card, { usage }).micros
    }),
    { numRuns: 200 },
  )
})

t.test("a cached prompt never costs more than a fresh one where cache_read is the cheaper line", async () => {
  fc.assert(
    fc.property(cards, fc.nat(1_000_000), fc.nat(1_000_000), ({ card, rates }, input, cached) => {
      fc.pre(rates.cache_read <= rates.input)
      const fresh = price(card, { usage: { input: input + cached } }).micros
      return price(card, { usage: { input, cache_read: cached } }).micros <= fresh
    }),
    { numRuns: 200 },
  )
})

t.test("the dearest row is never below what any prompt and tier pay", async () => {
  const card = cardFrom(`
input: 1000 per 1M tokens
output: 5000 per 1M tokens
when:
  - { if: { prompt: "> 1000" }, input: 2000 per 1M tokens }
  - { if: { service_tier: priority }, times: 1.75 }
`)
  fc.assert(
    fc.property(usages, fc.constantFrom("priority", "default"), (usage, serviceTier) => {
      return price(card, { usage, dearest: true }).micros >= price(card, { usage, serviceTier }).micros
    }),
    { numRuns: 200 },
  )
})
