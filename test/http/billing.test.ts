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

t.test("what was delivered and could not be counted costs the estimated input", t => {
  const bill = { usage: { input: 100 }, source: "counted" as const }
  t.same(billFor({ outputBytes: 0 }, "delivered", estimated, true), { bill, missing: true })
  t.same(billFor({ outputBytes: 0 }, "cancelled", estimated, true), { bill, missing: false })
  t.same(billFor({ outputBytes: 0 }, "broken", estimated, true), { bill: undefined, missing: false })
  t.end()
})

t.test("a side that the vendor left out, or told before the end, is estimated and counted", t => {
  const billed = (report: Parameters<typeof billFor>[0]) => billFor(report, "delivered", estimated)
  t.same(billed({ usage: { output: 20 }, outputBytes: 70 }), {
    bill: { usage: { input: 100, output: 20 }, source: "counted" },
    missing: true,
  })
  t.same(billed({ usage: { input: 7 }, outputBytes: 70 }).bill?.usage, { input: 7, output: 20 })
  t.same(billed({ usage: { cache_read: 7 }, outputBytes: 70 }).bill?.usage, { cache_read: 7, output: 20 })
  t.same(billed({ usage: { input: 7, output: 1 }, outputBytes: 70, provisional: true }).bill?.usage, {
    input: 7,
    output: 20,
  })
  for (const complete of [
    { usage: { input: 7 }, outputBytes: 0 },
    { usage: { input: 7, image_output: 9 }, outputBytes: 70 },
    { usage: { input: 7 }, outputBytes: 1, wordless: true as const },
    { usage: { requests: 1 }, outputBytes: 70 },
    { usage: { cost_dollars: 1 }, outputBytes: 70 },
  ]) {
    t.same(billed(complete), { bill: { usage: complete.usage, source: "vendor" }, missing: false })
  }
  t.end()
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
