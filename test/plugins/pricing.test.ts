/** The quote of a call: what is held, and what must be there for it. */
import fc from "fast-check"
import t from "tap"
import { type Body, type Model, price } from "../../core/index.ts"
import { quoteFor } from "../../plugins/pricing.ts"
import { cardFrom } from "../fixtures/catalog.ts"

const model: Model = {
  name: "some-model",
  type: "search",
  family: "acme",
  targets: [],
  created: 0,
  rules: {},
  messages: false,
  offered: true,
  capabilities: [],
  aliases: [],
}
const bodyOf = (textBytes: number): Body => ({
  bytes: Buffer.alloc(0),
  field: () => undefined,
  scan: { textBytes, images: 0, files: 0, found: new Map(), values: 1 },
  json: () => ({}),
})
const quoteOf = (card: string, type: Model["type"], textBytes: number) =>
  quoteFor(
    { price },
    {
      route: {
        method: "POST",
        path: "/",
        access: "key",
        dialect: "plain",
        model: "none",
        charge: "usage",
        limit: "common",
        handle: () => Promise.reject(),
      },
    },
    {
      card: cardFrom(card),
      model: { ...model, type },
      body: bodyOf(textBytes),
      demand: { stream: false },
      output_allowance: 10,
    },
  )

t.test("where only the vendor will say what a call cost, one micro must be there", async t => {
  const costOnly = "vendor_cost: 1000 per dollar"
  const tiered = `{ ${costOnly}, when: [{ if: { service_tier: fast }, times: 2 }] }`
  for (const card of [costOnly, tiered, `{ ${costOnly}, requests: 0 per requests }`]) {
    t.match(quoteOf(card, "search", 300), { micros: 1, least: 1 }, card)
  }
  t.match(quoteOf(`{ ${costOnly}, requests: 2 per requests }`, "search", 0), { micros: 2_000_000, least: 2_000_000 })
  t.match(quoteOf("requests: 0 per requests", "search", 300), { micros: 0, least: 0 }, "what is free stays free")
})

t.test("never more must be there than is held, and something wherever the vendor's cost is charged", async () => {
  const lines = fc.record(
    {
      input: fc.constantFrom("0 per 1M tokens", "3 per 1M tokens"),
      output: fc.constantFrom("0 per 1M tokens", "15 per 1M tokens"),
      requests: fc.constantFrom("0 per requests", "2 per requests"),
      vendor_cost: fc.constant("1000 per dollar"),
    },
    { requiredKeys: ["vendor_cost"] },
  )
  const types = fc.constantFrom<Model["type"][]>("search", "llm", "embedding")
  fc.assert(
    fc.property(lines, types, fc.nat(10_000), (card, type, textBytes) => {
      const { micros, least } = quoteOf(JSON.stringify(card), type, textBytes)
      return least >= 1 && micros >= least
    }),
  )
})
