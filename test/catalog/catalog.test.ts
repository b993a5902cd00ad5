import { join } from "node:path"
import t, { type Test } from "tap"
import { ConfigError, loadConfig } from "../../core/catalog/load.ts"
import { price } from "../../core/index.ts"
import { folderWith, loadFrom, smallEnvironment } from "../fixtures/catalog.ts"

const problemsOf = async (t: Test, catalog: string): Promise<readonly string[]> => {
  const folder = await folderWith(t, { "catalog.yaml": catalog })
  const error = await loadConfig(join(folder, "gateway.yaml"), { env: smallEnvironment }).then(
    () => undefined,
    reason => reason,
  )
  if (error === undefined) return []
  if (!(error instanceof ConfigError)) throw error
  return error.problems.map(problem => problem.replaceAll(`${folder}/`, ""))
}

const model = (body: string): string => `models:\n  m: { type: llm, targets: [{ vendor: one, model: x }], ${body} }\n`

t.test("a model is found by its name and by its old names, in the order of the file", async t => {
  const { catalog } = await loadFrom(t, {
    "catalog.yaml": `models:
  second:
    id: 7
    type: video
    family: someone
    targets: [{ vendor: one, model: 5, weight: 2 }, { vendor: one, model: other }]
    description: A model
    context_window: 1000
    max_output: 100
    created: 2026-03-05
    capabilities: [tools]
    messages: true
    offered: false
    rules:
      { temperature: [1], refuse: [top_p], max_tokens_as: max_completion_tokens, efforts: [low], effort_budgets: { low: 1024 }, effort_with_tools: drop, sampling_efforts: [none, default], reasoning_back: true, responses_only: true }
    parameters: { type: object, properties: { size: { enum: [a], default: a } } }
    price: { requests: 2 per requests }
  first: { type: llm, targets: [{ vendor: one, model: x }] }
aliases: { old: second, older: second, once: first }
`,
  })
  t.same([...catalog.models.keys()], ["second", "first"])
  t.equal(catalog.find("older"), catalog.models.get("second"))
  t.equal(catalog.find("once"), catalog.find("first"))
  for (const name of ["nobody", "__proto__", "constructor", ""]) t.equal(catalog.find(name), undefined, name)
  t.match(catalog.find("second"), {
    name: "second",
    id: 7,
    type: "video",
    family: "someone",
    targets: [
      { vendor: "one", model: "5", weight: 2 },
      { vendor: "one", model: "other" },
    ],
    contextWindow: 1000,
    maxOutput: 100,
    created: Date.UTC(2026, 2, 5) / 1000,
    aliases: ["old", "older"],
    messages: true,
    offered: false,
    rules: {
      temperature: [1],
      refuse: ["top_p"],
      max_tokens_as: "max_completion_tokens",
      efforts: ["low"],
      effort_budgets: { low: 1024 },
      effort_with_tools: "drop",
      sampling_efforts: ["none", "default"],
      reasoning_back: true,
      responses_only: true,
    },
  })
  t.equal(catalog.find("first")?.price, undefined, "a model may have no price: it is answered with 500")
})

t.test("an overlay replaces the whole price of a model, `when` included, and no other", async t => {
  const { catalog } = await loadFrom(t, {
    "catalog.yaml": `models:
  a:
    type: llm
    targets: [{ vendor: one, model: x }]
    price: { input: 10 per 1K tokens, output: 20 per 1K tokens, when: [{ if: { prompt: "> 5" }, times: 9 }] }
  b: { type: llm, targets: [{ vendor: one, model: x }], price: { input: 1 per 1K tokens } }
  c: { type: llm, targets: [{ vendor: one, model: x }] }
overlays: { partner: { a: { price: { input: 3 per 1K tokens } }, c: { price: { input: 4 per 1K tokens } } } }
`,
  })
  const of = (name: string, overlay?: string): number | undefined => {
    const card = catalog.card(catalog.find(name)!, overlay)
    return card === undefined ? undefined : price(card, { usage: { input: 1000, output: 1000 } }).micros
  }
  t.same(catalog.overlays, ["partner"])
  t.equal(of("a"), 270_000_000)
  t.equal(of("a", "partner"), 3_000_000)
  t.equal(of("b", "partner"), 1_000_000)
  t.equal(of("c"), undefined)
  t.equal(of("c", "partner"), 4_000_000)
  t.equal(of("a", "unheard-of"), undefined, "an overlay that is gone is no reason to charge the list's price")
  t.not(catalog.card(catalog.find("a")!, "partner")?.digest, catalog.find("a")?.price?.digest)
})

t.test("the digest changes with the catalog and not with the order of keys", async t => {
  const digestOf = async (body: string): Promise<string> =>
    (await loadFrom(t, { "catalog.yaml": model(body) })).catalog.digest
  const first = await digestOf("max_output: 5, price: { input: 1 per 1K tokens, output: 2 per 1K tokens }")
  t.match(first, /^[0-9a-f]{12}$/)
  t.equal(await digestOf("price: { output: 2 per 1K tokens, input: 1 per 1K tokens }, max_output: 5"), first)
  t.not(await digestOf("max_output: 6, price: { input: 1 per 1K tokens, output: 2 per 1K tokens }"), first)
})

t.test("what a catalog cannot mean is told with its place", async t => {
  const cases: readonly (readonly [catalog: string, problem: string | RegExp])[] = [
    ["{}", "catalog.yaml:1:1 (top): models is missing"],
    ["models: { m: { type: llm } }", "catalog.yaml:1:14 models.m: targets is missing"],
    ["models: { m: { type: llm, targets: [] } }", /models.m.targets: expected at least one target/],
    [
      "models: { m: { type: llm, targets: [{ vendor: two, model: x }] } }",
      "catalog.yaml:1:47 models.m.targets.0.vendor: expected a vendor of this deployment (one), found two",
    ],
    ["models: { m: { type: llm, targets: [{ vendor: one }] } }", /targets.0: model is missing/],
    [
      "models: { m: { type: llm, targets: [{ vendor: one, model: x, weight: 0 }] } }",
      /weight: expected a whole number/,
    ],
    ["models: { 'a b': { type: llm, targets: [{ vendor: one, model: x }] } }", /models.a b: expected a name/],
    ["models: { '-a': { type: llm, targets: [{ vendor: one, model: x }] } }", /models.-a: expected a name/],
    [model("kind: llm"), /models.m.kind: unknown key/],
    [model("created: 2026-02-31-1"), /created: expected a day/],
    [model("created: 2026-13-01"), /created: expected a day of the calendar/],
    [model("rules: { temperatur: [1] }"), /rules.temperatur: unknown key/],
    [model("rules: { temperature: 1 }"), /rules.temperature: expected a list/],
    [model("parameters: { type: nonsense }"), /parameters: expected a JSON Schema/],
    [`${model("")}aliases: { old: gone }`, /aliases.old: there is no model gone/],
    [`${model("")}aliases: { m: m }`, /aliases.m: expected another name: a model has this one/],
    [
      `${model("")}overlays: { p: { gone: { price: { input: 1 per 1K tokens } } } }`,
      /overlays.p.gone: there is no model gone/,
    ],
    [`${model("")}overlays: { p: { m: {} } }`, /overlays.p.m: price is missing/],
    [
      model("id: 1").replace("}\n", "}\n  n: { id: 1, type: llm, targets: [{ vendor: one, model: x }] }\n"),
      /models.n: expected a unique id: m has 1 too/,
    ],
    [model("price: {}"), /price: expected at least one price line/],
    [model("price: { input: 3000 }"), /models.m.price.input: expected credits per \[1K\|1M\] tokens, found 3000$/],
    [model("price: { input: -1 per 1M tokens }"), /price.input: expected credits per/],
    [model("price: { input: 1 per 1M images }"), /price.input: expected credits per \[1K\|1M\] tokens/],
    [model("price: { input: 1 per 2M tokens }"), /price.input: expected credits per/],
    [model("price: { input: 1e3 per 1M tokens }"), /price.input: expected credits per/],
    [model("price: { input: 9999999999 per tokens }"), /price.input: expected credits from 0 to/],
    [
      model("price: { inputs: 1 per 1M tokens }"),
      /price.inputs: expected a table, vendor_cost or one of: input, cache_read.*, requests, round, when$/,
    ],
    [model("price: { input: 1 per 1M tokens, round: up }"), /price.round: expected micro or credit/],
    [model("price: { vendor_cost: 1000 }"), /price.vendor_cost: expected credits per dollar/],
    [model("price: { input: 1 per 1M tokens, when: [{ times: 2 }] }"), /price.when.0: if is missing/],
    [
      model("price: { input: 1 per 1M tokens, when: [{ if: {}, times: 2 }] }"),
      /when.0.if: expected prompt or service_tier/,
    ],
    [
      model("price: { input: 1 per 1M tokens, when: [{ if: { prompt: '= 5' }, times: 2 }] }"),
      /if.prompt: expected tokens/,
    ],
    [
      model("price: { input: 1 per 1M tokens, when: [{ if: { prompt: '> 5' } }] }"),
      /when.0: expected times or price lines/,
    ],
    [
      model("price: { input: 1 per 1M tokens, when: [{ if: { prompt: '> 5' }, times: .inf }] }"),
      /times: expected a number/,
    ],
    [model("price: { video: { per: minute, rows: 5 } }"), /price.video.per: expected request, image/],
    [
      model("price: { video: { per: request, table: [size], rows: 5 } }"),
      /price.video.rows: expected credits for each size/,
    ],
    [model("price: { video: { per: request, rows: many } }"), /price.video.rows: expected credits from 0/],
  ]
  for (const [catalog, problem] of cases) {
    const problems = await problemsOf(t, catalog)
    const found = problems.some(one => (typeof problem === "string" ? one === problem : problem.test(one)))
    t.ok(found, catalog, { diagnostic: !found, problems })
  }
})

t.test("a line on what no model of that type ever uses is a problem", async t => {
  const card = (type: string, price: string): string =>
    `models: { m: { type: ${type}, targets: [{ vendor: one, model: x }], price: { ${price} } } }\n`
  const refused = [
    ["rerank", "characters: 1 per 1K characters", "characters"],
    ["embedding", "documents: 1 per 1K documents", "documents"],
    ["embedding", "input: 1 per 1M tokens, output: 1 per 1M tokens", "output"],
    ["llm", "input: 1 per 1M tokens, seconds: 6 per minute", "seconds"],
    ["search", "input: 1 per 1M tokens", "input"],
    ["rerank", "images: { per: image, rows: 5 }", "images"],
    ["guard", "input: 1 per 1M tokens, when: [{ if: { prompt: '> 5' }, documents: 1 per documents }]", "documents"],
  ] as const
  for (const [type, price, item] of refused) {
    const problems = await problemsOf(t, card(type, price))
    t.match(problems, [new RegExp(`^catalog.yaml:1:\\d+ .*models.m.price: no ${type} model ever uses ${item}$`)], price)
  }
  const taken = [
    ["rerank", "documents: 1 per 1K documents, input: 1 per 1M tokens, requests: 1 per requests"],
    ["embedding", "characters: 1 per 1K characters, input: 1 per 1M tokens"],
    ["llm", "vendor_cost: 1000 per dollar"],
    ["audio", "seconds: 6 per minute, characters: 1 per characters"],
  ] as const
  for (const [type, price] of taken) t.same(await problemsOf(t, card(type, price)), [], price)
  const overlay = `${model("")}overlays: { p: { m: { price: { documents: 1 per documents } } } }`
  t.match(await problemsOf(t, overlay), [/overlays.p.m.price: no llm model ever uses documents$/])
})

t.test("a price table must have a row for every value that the parameters allow", async t => {
  const video = (parameters: string, table: string): string =>
    model(`parameters: { type: object, properties: { ${parameters} } }, price: { video: ${table} }`)
  const size = "size: { enum: [s, l], default: s }"
  const cases: readonly (readonly [catalog: string, problem: RegExp | undefined])[] = [
    [video(size, "{ per: request, table: [size], rows: { s: 1, l: 2 } }"), undefined],
    [video(size, "{ per: request, table: [size], rows: { s: 1 } }"), /video: no row for size l$/],
    [
      video("size: { enum: [s, l] }", "{ per: request, table: [size], rows: { s: 1, l: 2 } }"),
      /parameter size has no default/,
    ],
    [
      video("size: { type: string, default: s }", "{ per: request, table: [size], rows: { s: 1 } }"),
      /no finite set of values/,
    ],
    [
      video(
        "n: { type: integer, minimum: 1, maximum: 3, default: 1 }",
        "{ per: request, table: [n], rows: { 1: 1, 3: 3 } }",
      ),
      /no row for n 2$/,
    ],
    [
      video("audio: { type: boolean, default: true }", "{ per: request, table: [audio], rows: { true: 1 } }"),
      /no row for audio false$/,
    ],
    [video(size, "{ per: second of duration, rows: 5 }"), /parameter duration is not declared/],
    [video("duration: { type: integer, default: 5 }", "{ per: second of duration, rows: 5 }"), undefined],
    [
      video("duration: { type: integer }", "{ per: second of duration, rows: 5 }"),
      /parameter duration has no number as its default/,
    ],
    [model("price: { video: { per: request, table: [size], rows: { s: 1 } } }"), /parameter size is not declared/],
  ]
  for (const [catalog, problem] of cases) {
    const problems = await problemsOf(t, catalog)
    t.match(problems, problem === undefined ? [] : [problem], catalog)
    t.equal(problems.length, problem === undefined ? 0 : 1)
  }
})
