import t from "tap"
import { billFor } from "../../core/http/billing.ts"

const estimated = { input: 100 }

t.test("reported usage is billed as the vendor counts it, whole or broken", async t => {
  const report = { usage: { input: 7, output: 3 }, outputBytes: 10, serviceTier: "priority" }
  for (const end of ["delivered", "broken"] as const) {
    t.same(billFor(report, end, estimated), {
      bill: { usage: { input: 7, output: 3 }, source: "vendor", serviceTier: "priority" },
      missing: false,
    })
  }
})

t.test("output without usage is counted by its bytes, on the estimated input, and is missed", async t => {
  for (const usage of [undefined, {}, { input: 0, output: 0 }]) {
    const report = { ...(usage === undefined ? {} : { usage }), outputBytes: 36 }
    t.same(billFor(report, "delivered", estimated), {
      bill: { usage: { input: 100, output: 11 }, source: "counted" },
      missing: true,
    })
  }
})

t.test("an answer that ends without output and without usage costs nothing", async t => {
  for (const end of ["delivered", "broken", "cancelled"] as const) {
    t.same(billFor({ outputBytes: 0 }, end, estimated), { bill: undefined, missing: false })
  }
})

t.test("a vendor that dies before it reports is not paid for what it sent", async t => {
  t.same(billFor({ outputBytes: 500 }, "broken", estimated).bill, undefined)
})

t.test(
  "a cancelled answer costs the input that was reported, else the estimate, and the output that was seen",
  async t => {
    t.same(billFor({ outputBytes: 7 }, "cancelled", estimated).bill, {
      usage: { input: 100, output: 2 },
      source: "counted",
    })
    t.same(billFor({ usage: { input: 40, cache_read: 5, output: 1 }, outputBytes: 7 }, "cancelled", estimated).bill, {
      usage: { input: 40, cache_read: 5, output: 2 },
      source: "counted",
    })
  },
)

t.test("a cancelled answer never costs less output than the vendor reported so far", async t => {
  t.same(billFor({ usage: { input: 1, output: 90 }, outputBytes: 7 }, "cancelled", estimated).bill?.usage.output, 90)
})

t.test("what only its cost in dollars is known of is billed by that", async t => {
  t.same(billFor({ usage: { cost_dollars: 0.005 }, outputBytes: 0 }, "delivered", {}).bill?.usage, {
    cost_dollars: 0.005,
  })
})

t.test("vectors without usage are billed by the estimated input alone", async t => {
  const report = { outputBytes: 1, wordless: true } as const
  const bill = { usage: { input: 100 }, source: "counted" as const }
  t.same(billFor(report, "delivered", estimated), { bill, missing: true })
  t.same(billFor(report, "cancelled", estimated), { bill, missing: false })
  t.same(billFor(report, "broken", estimated), { bill: undefined, missing: false })
})
