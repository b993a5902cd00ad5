import { fileURLToPath } from "node:url"
import t from "tap"
import { uncovered } from "../../core/catalog/coverage.ts"
import { loadConfig } from "../../core/catalog/load.ts"
import { describePrice, inputBuckets, price } from "../../core/index.ts"

const file = (name: string): string => fileURLToPath(new URL(`../../config/${name}`, import.meta.url))
const everyKey: Readonly<Record<string, string>> = new Proxy(
  {},
  {
    getOwnPropertyDescriptor: () => ({ value: "k", configurable: true, enumerable: true }),
    get: (_, name) => (name === "PORT" ? undefined : "k"),
  },
)

t.test("the sandbox loads with nothing in the environment", async t => {
  const config = await loadConfig(file("sandbox.yaml"), { env: {} })
  t.match(config, { sandbox: true, store: { kind: "sqlite", durability: "process" }, bootstrap: [{ name: "demo" }] })
  t.ok(config.bootstrap[0]!.members[0]!.micros > 0)
  t.ok(config.bootstrap[0]!.members[0]!.keys.length > 0)
})

t.test("production loads with one vendor's key, and with all of them offers what the sandbox does", async t => {
  const one = await loadConfig(file("gateway.yaml"), { env: { ANTHROPIC_API_KEY: "k" } })
  t.same([...one.vendors.keys()], ["anthropic"])
  t.ok(one.catalog.models.size > 0)
  const all = await loadConfig(file("gateway.yaml"), { env: everyKey })
  t.same(all.vendors.get("openai")?.options, { developer: true })
  t.same(all.vendors.get("mistral")?.options, {
    max_tokens_as: "max_tokens",
    leave_out: ["stream_options", "user"],
  })
  const sandbox = await loadConfig(file("sandbox.yaml"), { env: {} })
  t.same([...all.catalog.models.keys()], [...sandbox.catalog.models.keys()])
  t.same(
    all.plugins.map(({ name, options }) => ({ name, options })),
    sandbox.plugins.map(({ name, options }) => ({ name, options })),
  )
})

t.test("every model that is offered has a price that covers its parameters and costs something", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  const usage = { input: 1000, output: 1000, cache_read: 1000, cache_write_5m: 1000, cost_dollars: 0.01 }
  for (const model of catalog.models.values()) {
    if (!model.offered) continue
    const card = catalog.card(model, undefined)
    if (card === undefined) {
      t.fail(`${model.name} has no price`)
      continue
    }
    t.same(uncovered(card, model.parameters), [], model.name)
    const { micros } = price(card, { usage })
    t.ok(Number.isSafeInteger(micros) && micros >= 0 && micros < 10_000_000_000, `${model.name}: ${micros} micros`)
    t.ok(price(card, { usage, dearest: true }).micros >= micros, model.name)
  }
})

t.test("reading from a cache is never dearer than reading afresh, and writing never cheaper by much", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  for (const model of catalog.models.values()) {
    const card = model.price
    if (card === undefined || model.type !== "llm") continue
    const fresh = price(card, { usage: { input: 1000 } }).micros
    t.ok(price(card, { usage: { cache_read: 1000 } }).micros <= fresh, model.name)
    t.ok(price(card, { usage: { cache_write_1h: 1000 } }).micros >= fresh, model.name)
  }
})

t.test(
  "what the tools of /responses/ do beside the tokens has a price with every model that has the tools",
  async t => {
    const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
    const searching = [...catalog.models.values()].filter(
      ({ family, price }) => family === "openai" && price?.lines.some(line => line.item === "web_search"),
    )
    t.ok(searching.length > 30)
    for (const { name, price: card } of searching) {
      const { micros, unpriced } = price(card!, { usage: { image_output: 1000 } })
      t.same({ micros, unpriced }, { micros: 40_000_000, unpriced: [] }, name)
    }
  },
)

t.test("known prices of known models, one credit being a tenth of a cent", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  const dollars = (name: string, input: number, output: number, serviceTier?: string): number => {
    const card = catalog.find(name)!.price!
    return price(card, { usage: { input, output }, ...(serviceTier === undefined ? {} : { serviceTier }) }).micros / 1e9
  }
  t.equal(dollars("gpt-5.4", 1_000, 1_000), 0.0175)
  t.equal(dollars("gpt-5.4", 1_000, 1_000, "priority"), 0.035)
  t.equal(dollars("gpt-5.4", 1_000_000, 0), 5)
  t.equal(dollars("gpt-5.2", 1_000, 1_000, "priority"), 0.0315)
  t.equal(dollars("gpt-5.2", 1_000, 1_000, "flex"), 0.01575)
  t.equal(dollars("gpt-5-mini", 1_000_000, 1_000_000, "priority"), 4.05)
  t.equal(dollars("gpt-4.1", 1_000, 1_000, "priority"), 0.0175)
  t.equal(dollars("gpt-4o-mini", 1_000_000, 1_000_000, "priority"), 1.25)
  t.equal(dollars("claude-opus-4-5-20251101", 1_000, 1_000), 0.03)
  t.equal(dollars("gemini-2.5-pro", 200_000, 0), 0.25)
  t.equal(dollars("gemini-2.5-pro", 200_001, 0).toFixed(7), "0.5000025")
  t.equal(dollars("gemini-2.5-pro", 1_000, 1_000, "priority"), 0.02025)
  t.equal(dollars("gemini-3.1-pro-preview", 200_001, 1_000, "priority").toFixed(7), "1.4724072")
  t.equal(dollars("claude-opus-4-8", 1_000, 1_000, "us"), 0.033)
})

t.test(
  "every model of a vendor with a dearer tier has a price for it, and its searches cost what they did",
  async t => {
    const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
    const dearer: readonly (readonly [tier: string, names: RegExp, times: number])[] = [
      ["priority", /^gemini-(?!embedding)/, 1.8],
      ["us", /^claude-(?:[a-z]+-5|(?:opus|sonnet)-4-[678])$/, 1.1],
    ]
    for (const [serviceTier, names, times] of dearer) {
      const models = [...catalog.models.values()].filter(({ name, offered }) => offered && names.test(name))
      t.ok(models.length >= 6)
      for (const { name, price: card } of models) {
        for (const bucket of [...inputBuckets, "output"] as const) {
          for (const prompt of [1_000, 1_000_000]) {
            const usage = { input: prompt, [bucket]: prompt }
            const usual = price(card!, { usage }).micros
            t.equal(price(card!, { usage, serviceTier }).micros, Math.round(usual * times), `${name} ${bucket}`)
          }
        }
        const search = { usage: { web_search: 1 } }
        t.equal(price(card!, { ...search, serviceTier }).micros, price(card!, search).micros, name)
      }
    }
  },
)

t.test("a model of the Messages wire that cannot be forced to call a tool writes JSON by itself", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  const unforced = [...catalog.models.values()].filter(({ rules }) => rules.refuse?.includes("tool_choice"))
  t.ok(unforced.length > 0)
  for (const { name, capabilities } of unforced) t.ok(capabilities.includes("structured_output"), name)
})

t.test("efforts that have budgets are offered, and the other way round", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  for (const { name, rules } of catalog.models.values()) {
    if (rules.effort_budgets === undefined) continue
    const budgets = Object.keys(rules.effort_budgets)
    t.same(
      budgets.filter(effort => !rules.efforts?.includes(effort)),
      [],
      name,
    )
    t.same(
      rules.efforts?.filter(effort => effort !== "none" && !budgets.includes(effort)),
      [],
      name,
    )
  }
})

t.test("reasoning models of OpenAI from o3 on are sent no stop, and sampling only where they do not think", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  const chatting = [...catalog.models.values()].filter(
    ({ family, type, rules }) => family === "openai" && type === "llm" && rules.responses_only !== true,
  )
  const later = chatting.filter(({ name }) => /^(o3|o4-mini|gpt-5[^-]*(-(mini|nano))?|gpt-5\..*)$/.test(name))
  t.equal(later.length, 14)
  for (const { name, rules } of chatting) {
    const isLater = later.some(model => model.name === name)
    t.equal(rules.refuse?.includes("stop") ?? false, isLater, name)
    const mayNotThink = rules.efforts?.includes("none") ?? false
    t.equal(rules.sampling_efforts?.includes("none") ?? false, mayNotThink, name)
    if (isLater && !mayNotThink) t.match(rules, { temperature: [1] }, name)
    if (isLater && !mayNotThink) t.ok(rules.refuse?.includes("top_p"), name)
  }
})

t.test("a price is described to clients in their own unit", async t => {
  const { catalog } = await loadConfig(file("sandbox.yaml"), { env: {} })
  const described = describePrice(catalog.find("gemini-2.5-pro")!.price!)
  t.match(described, {
    unit: "credits",
    round: "micro",
    lines: [{ item: "input", basis: "1250 credits per 1M tokens", credits: 0.00125 }],
    when: [
      { if: { prompt: "> 200000", service_tier: "priority" }, lines: [{ item: "input", credits: 0.0045 }] },
      { if: { service_tier: "priority" }, lines: [{ item: "input", credits: 0.00225 }] },
      { if: { prompt: "> 200000" }, lines: [{ item: "input", credits: 0.0025 }] },
    ],
  })
  t.same(JSON.parse(JSON.stringify(described)), described)
})
