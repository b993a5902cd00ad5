/** The quote of a call: what is held, and what must be there for it. */
import fc from "fast-check"
import t from "tap"
import { type Body, type Demand, type JsonSchema, type Model, price, type Route } from "../../core/index.ts"
import { quoteFor } from "../../plugins/pricing.ts"
import { cardFrom } from "../fixtures/catalog.ts"
import { bearer, json, keys, openProduct, productCatalog } from "../fixtures/product.ts"

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
const bodyOf = (textBytes: number, sent: Record<string, unknown> = {}): Body => ({
  bytes: Buffer.alloc(0),
  field: () => undefined,
  scan: { textBytes, images: 0, files: 0, found: new Map(), values: 1 },
  json: () => sent,
})
const route: Route = {
  method: "POST",
  path: "/",
  access: "key",
  dialect: "plain",
  model: "none",
  charge: "usage",
  limit: "common",
  handle: () => Promise.reject(),
}

interface Asked {
  readonly route?: Partial<Route>
  readonly demand?: Partial<Demand>
  readonly maxOutput?: number
  readonly parameters?: JsonSchema
  readonly sent?: Record<string, unknown>
}

/** The allowance is ten tokens. */
const quoteOf = (card: string, type: Model["type"], textBytes: number, asked: Asked = {}) => {
  const { demand, maxOutput, parameters, sent } = asked
  return quoteFor(
    { price },
    { route: { ...route, ...asked.route } },
    {
      card: cardFrom(card),
      model: { ...model, type, ...(maxOutput !== undefined && { maxOutput }), ...(parameters && { parameters }) },
      body: bodyOf(textBytes, sent),
      demand: { stream: false, ...demand },
      output_allowance: 10,
    },
  )
}

const perToken = "input: 1000 per 1M tokens, output: 2000 per 1M tokens"

t.test("what is held for output is what was asked for, never above the model's most or the allowance", async t => {
  const output = (demand: Partial<Demand>, maxOutput?: number): number => {
    const asked = { demand, ...(maxOutput === undefined ? {} : { maxOutput }) }
    return quoteOf(`{ ${perToken} }`, "llm", 0, asked).micros / 2_000
  }
  t.equal(output({}), 10, "the allowance, where nobody says anything")
  t.equal(output({}, 7), 7, "the model's most")
  t.equal(output({}, 70), 10)
  t.equal(output({ maxOutput: 3 }), 3, "what was asked for")
  t.equal(output({ maxOutput: 30 }), 10)
  t.equal(output({ maxOutput: 30 }, 70), 10)
  t.equal(output({ maxOutput: 9 }, 7), 7)
  t.equal(output({ maxOutput: 3, choices: 4 }), 12, "each answer has its own")
  t.equal(output({ maxOutput: 2.5, choices: 1.5 }), 6, "odd numbers are for the vendor to refuse")
  t.equal(output({ maxOutput: -5, choices: 0 }), 1 / 2000, "one micro, which an empty wallet has not")
})

t.test("only what writes an answer has output held", async t => {
  const micros = (type: Model["type"]) => quoteOf(`{ ${perToken} }`, type, 30).micros
  t.equal(micros("llm"), 10_000 + 20_000)
  t.equal(micros("decision"), 10_000 + 20_000)
  t.equal(micros("embedding"), 10_000)
})

t.test("held is the dearest row that may apply; the input and one token at the plain row must be there", async t => {
  const card = `{ ${perToken}, when: [{ if: { service_tier: priority }, times: 3 }] }`
  t.match(quoteOf(card, "llm", 30), { micros: 3 * (10_000 + 20_000), least: 10_000 + 2_000 })
  const asked = { demand: { serviceTier: "priority" } }
  t.match(quoteOf(card, "llm", 30, asked), { micros: 3 * (10_000 + 20_000), least: 3 * (10_000 + 2_000) })
  t.match(quoteOf(`{ ${perToken} }`, "llm", 0, { maxOutput: 0 }), { micros: 1, least: 1 }, "never more than is held")
})

t.test("where the price is known before, all of it must be there", async t => {
  const card = "{ requests: 2 per requests, when: [{ if: { service_tier: priority }, times: 3 }] }"
  t.match(quoteOf(card, "image", 30, { route: { charge: "acceptance" } }), { micros: 6_000_000, least: 6_000_000 })
  t.match(quoteOf(card, "image", 30), { micros: 6_000_000, least: 2_000_000 })
})

t.test(
  "a table is asked for the model's parameters: as `parameters` has them, else the body, else the default",
  async t => {
    const card = "{ picture: { per: request, table: [size], rows: { small: 1, large: 5 } } }"
    const parameters = { type: "object", properties: { size: { type: "string", default: "small" }, seed: {} } }
    const priced = (sent: Record<string, unknown>) => {
      const quote = quoteOf(card, "image", 0, { parameters, sent, route: { charge: "acceptance" } })
      return [quote.micros, quote.parameters]
    }
    t.same(priced({}), [1_000_000, { size: "small" }])
    t.same(priced({ size: "large", other: 1 }), [5_000_000, { size: "large" }])
    t.same(priced({ parameters: { size: "large", seed: 7 } }), [5_000_000, { size: "large", seed: 7 }])
    t.same(priced({ size: "small", parameters: { size: "large" } }), [5_000_000, { size: "large" }])
  },
)

t.test("what a route counts is told for the lines of the card, also for those of one row", async t => {
  const counts = { input: () => 7, documents: () => 3, characters: () => 5 }
  const counted = (card: string) => quoteOf(card, "rerank", 30, { route: { counts } }).counted
  t.same(counted(`{ ${perToken} }`), { input: 7 })
  t.same(counted("{ documents: 1 per 1K documents }"), { documents: 3 })
  const row = "{ if: { service_tier: priority }, documents: 1 per 1K documents }"
  t.same(counted(`{ input: 1000 per 1M tokens, when: [${row}] }`), { input: 7, documents: 3 })
  t.same(quoteOf(`{ ${perToken} }`, "rerank", 30, { route: { counts } }).estimated, { input: 7 })
  t.same(quoteOf(`{ ${perToken} }`, "rerank", 30).counted, { input: 10 }, "the estimate, where the route counts none")
})

t.test("where only the vendor will say what a call cost, one micro must be there", async t => {
  const costOnly = "vendor_cost: 1000 per dollar"
  const tiered = `{ ${costOnly}, when: [{ if: { service_tier: fast }, times: 2 }] }`
  for (const card of [costOnly, tiered, `{ ${costOnly}, requests: 0 per requests }`]) {
    t.match(quoteOf(card, "search", 300), { micros: 1, least: 1 }, card)
  }
  t.match(quoteOf(`{ ${costOnly}, requests: 2 per requests }`, "search", 0), { micros: 2_000_000, least: 2_000_000 })
  t.match(quoteOf("requests: 0 per requests", "search", 300), { micros: 0, least: 0 }, "what is free stays free")
})

t.test("where a call comes to nothing yet, one micro must be there, unless all is free", async t => {
  const tokens = "input: 3000 per 1M tokens, output: 6000 per 1M tokens"
  const free = "input: 0 per 1M tokens, output: 0 per 1M tokens"
  for (const card of [
    `{ ${tokens}, round: credit }`,
    "web_search: 10 per requests",
    `{ ${free}, image_output: 30000 per 1M tokens }`,
    `{ ${free}, when: [{ if: { service_tier: priority }, cache_read: 1 per 1M tokens }] }`,
  ])
    t.match(quoteOf(card, "llm", 300), { micros: 1, least: 1 }, card)
  t.match(quoteOf(`{ ${tokens}, when: [{ if: { prompt: "< 500" }, times: 0 }] }`, "llm", 300), { least: 1 })
  for (const card of [`{ ${free} }`, `{ ${free}, round: credit, when: [{ if: { prompt: "> 5" }, times: 2 }] }`])
    t.match(quoteOf(card, "llm", 300), { micros: 0, least: 0 }, card)
})

t.test("a wallet that is empty starts nothing whose price may round to more", async t => {
  const rounded = { ...productCatalog.models.gpt, price: { input: "1000 per 1M tokens", round: "credit" } }
  const product = await openProduct(t, { catalog: { models: { rounded } } })
  const usage = { prompt_tokens: 100_000, completion_tokens: 1 }
  const choices = [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }]
  product.vendor.answer = (_, response) => json(response, 200, { choices, usage })
  const ask = (key: string) =>
    product.call("/chat/completions/", { model: "rounded", messages: [{ role: "user", content: "hi" }] }, bearer(key))
  t.equal((await ask(keys.poor)).status, 402)
  t.equal((await ask(keys.alice)).headers.get("x-credits-charged"), "100")
})

t.test("choices without number hold all that there is, as so many would", async t => {
  const product = await openProduct(t)
  let held = 0
  product.vendor.answer = async (_, response) => {
    held = (await product.balance()).held
    json(response, 400, { error: { message: "n is too large" } })
  }
  const messages = [{ role: "user", content: "hi" }]
  for (const n of ["1000000", "1e308"]) {
    const body = JSON.stringify({ model: "gpt", messages }).replace("}]", `}], "n": ${n}`)
    t.equal((await product.call("/chat/completions/", body)).status, 400)
    t.equal(held, 1_000_000_000, n)
    held = 0
  }
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

const when = [
  { if: { service_tier: "priority" }, times: 2 },
  { if: { service_tier: "fast" }, times: 3 },
]
const tiered = (model: { readonly price: object | undefined }, more: object = {}) => ({
  ...model,
  ...more,
  price: { ...model.price, when },
})
const { gpt, claude, gemini } = productCatalog.models
const models = { gpt: tiered(gpt, { messages: true }), claude: tiered(claude), gemini: tiered(gemini) }

t.test("a tier that the vendor does not report is charged only where the vendor was asked for it", async t => {
  const product = await openProduct(t, { catalog: { models } })
  const counts = { prompt_tokens: 10, completion_tokens: 20, input_tokens: 10, output_tokens: 20 }
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 20 }
  const choices = [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }]
  const candidates = [{ content: { parts: [{ text: "Hello" }] }, finishReason: "STOP" }]
  const everyWire = { choices, content: [], usage: counts, candidates, usageMetadata }
  product.vendor.answer = (_, response) => json(response, 200, everyWire)
  const charged = async (path: string, model: string, more: object): Promise<number> => {
    const messages = [{ role: "user", content: "hi" }]
    const answer = await product.call(path, { model, messages, max_tokens: 9, ...more })
    return Number(answer.headers.get("x-credits-charged"))
  }
  const [chat, native] = ["/chat/completions/", "/vendor-a/v1/messages/"]
  const priority = { service_tier: "priority" }
  t.equal(await charged(chat, "gpt", priority), 0.1)
  t.equal(await charged(native, "claude", priority), 0.1)
  t.equal(await charged(native, "claude", { speed: "fast" }), 0.15)
  t.equal(await charged(chat, "claude", priority), 0.05, "the Messages wire is not told")
  t.equal(await charged(chat, "gemini", priority), 0.05, "nor is the generate-content wire")
  t.equal(await charged(native, "gpt", priority), 0.05, "nor a model of another family")
  t.equal(await charged(native, "gpt", { speed: "fast" }), 0.05)
  const generate = async (more: object): Promise<number> => {
    const contents = [{ role: "user", parts: [{ text: "hi" }] }]
    const answer = await product.call("/vendor-b/v1beta/models/gemini:generateContent", { contents, ...more })
    return Number(answer.headers.get("x-credits-charged"))
  }
  t.equal(await generate({}), 0.05)
  t.equal(await generate({ serviceTier: "priority" }), 0.1)
  t.equal(await generate({ service_tier: "SERVICE_TIER_PRIORITY" }), 0.1, "the name of the value on this wire")
  t.equal(await generate({ serviceTier: "SERVICE_TIER_STANDARD" }), 0.05)
})
