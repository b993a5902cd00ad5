/** Rerank on every wire: one shape for all clients, charges by recorded counts, refusals that cost nothing. */
import fc from "fast-check"
import t, { type Test } from "tap"
import { answerOf, requestOf } from "../../plugins/rerank.ts"
import { modelOf, openEndpoints, openSandboxed, told } from "../fixtures/endpoints.ts"
import { json } from "../fixtures/product.ts"
import { recorded } from "../fixtures/recorded.ts"

const perSearch = { price: { requests: "2 per requests" } }
const models = {
  cohere: modelOf("rerank", "cohere", perSearch),
  voyage: modelOf("rerank", "voyage"),
  jina: modelOf("rerank", "jina"),
  hosted: modelOf("rerank", "openai"),
  gpt: modelOf("llm", "openai"),
}
const open = (t: Test) => openEndpoints(t, models)
const documents = ["a", "b", "c", "d", "e", "f"]
const question = { query: "What?", documents }

t.test("each recorded answer has one shape for all clients and is charged by its own counts", async t => {
  const endpoints = await open(t)
  const answers = [
    {
      model: "cohere",
      from: "cohere",
      file: "cohere-reranking.1.json",
      credits: 2,
      scores: [0.10183054, 0.03762639],
      order: [1, 0],
      meta: { search_units: 1 },
      tokens: 0,
    },
    {
      model: "voyage",
      from: "voyage",
      file: "voyage-reranking.1.json",
      credits: 0.012,
      scores: [0.5703125, 0.255859375],
      order: [1, 0],
      meta: { total_tokens: 12 },
      tokens: 12,
    },
    {
      model: "hosted",
      from: "together",
      file: "togetherai-reranking.1.json",
      credits: 2.966,
      scores: [0.6475887154399037, 0.6323295373206566],
      order: [0, 5],
      meta: { total_tokens: 2966 },
      tokens: 2966,
    },
  ]
  let spent = 0
  for (const { model, from, file, credits, scores, order, meta, tokens } of answers) {
    endpoints.vendor.answer = (_, response) => json(response, 200, JSON.parse(recorded(from, file)[0]!.body.toString()))
    const answer = await told(await endpoints.call("/rerank/", { model, ...question, return_documents: true }))
    const results = order.map((index, at) => ({
      index,
      relevance_score: scores[at],
      document: { text: documents[index] },
    }))
    t.same(
      { ...answer, id: typeof answer.id },
      {
        status: 200,
        wait: null,
        charged: String(credits),
        object: "list",
        model,
        id: "string",
        results,
        usage: { total_tokens: tokens },
        meta: { billed_units: meta },
      },
      file,
    )
    spent += credits * 1_000_000
    t.equal(await endpoints.spent(), spent, file)
  }
})

t.test(
  "a card by documents or by tokens charges what the request tells where the vendor tells nothing of it",
  async t => {
    const cards = {
      "by-document": { documents: "10 per 1K documents" },
      "by-token": { input: "1000 per 1M tokens" },
      "by-both": { documents: "10 per 1K documents", input: "1000 per 1M tokens" },
    }
    const priced = Object.entries(cards).flatMap(([name, price]) =>
      ["cohere", "voyage"].map(vendor => [`${vendor}-${name}`, modelOf("rerank", vendor, { price })] as const),
    )
    const endpoints = await openEndpoints(t, Object.fromEntries(priced))
    const results = [{ index: 0, relevance_score: 0.5 }]
    const ask = async (model: string, reported: object) => {
      endpoints.vendor.answer = (_, response) => json(response, 200, { results, data: results, ...reported })
      const { charged, usage } = await told(await endpoints.call("/rerank/", { model, ...question }))
      return { charged: Number(charged), usage }
    }
    const units = { meta: { billed_units: { search_units: 1 } } }
    const tokens = { usage: { total_tokens: 12 } }
    // The model's name is a text of the body too.
    const estimated = (model: string) =>
      Math.ceil(Buffer.byteLength([model, ...documents, question.query.repeat(documents.length)].join("")) / 3)
    for (const reported of [units, {}]) {
      const [name, both] = ["cohere-by-token", "cohere-by-both"]
      t.same(await ask("cohere-by-document", reported), { charged: 0.06, usage: { total_tokens: 0 } })
      t.same(await ask(name, reported), { charged: estimated(name) / 1000, usage: { total_tokens: estimated(name) } })
      t.match(await ask(both, reported), { charged: (60 + estimated(both)) / 1000 })
    }
    t.same(await ask("voyage-by-document", tokens), { charged: 0.06, usage: { total_tokens: 12 } })
    t.match(await ask("voyage-by-token", tokens), { charged: 0.012 })
    t.match(await ask("voyage-by-both", tokens), { charged: 0.072 })
    const rows = await endpoints.gateway.parts.store.accounts.entries(
      { organisation: "acme", member: "alice" },
      { after: 0, limit: 100 },
    )
    const known = (model: string) => rows.findLast(({ detail }) => detail?.model === model)?.detail
    t.match(known("voyage-by-token"), { source: "vendor", usage: { input: 12 } })
    t.match(known("voyage-by-both"), { source: "counted", usage: { input: 12, documents: 6 } }, "the row says so")
    t.notMatch(
      await endpoints.metrics(),
      /usage_unpriced_total\{.*\} [1-9]/,
      "a price by the piece pays for the tokens",
    )
  },
)

t.test("what is held covers the query once for each document: so vendors count it", async t => {
  const endpoints = await openEndpoints(t, { ranker: modelOf("rerank", "voyage") })
  const query = "which of these?".repeat(20)
  let held = 0
  endpoints.vendor.answer = async (_, response) => {
    held = (await endpoints.balance()).held
    const total_tokens = 50 * 75 + 50
    json(response, 200, { data: [{ index: 0, relevance_score: 0.5 }], usage: { total_tokens } })
  }
  const ask = (count: number) =>
    endpoints.call("/rerank/", { model: "ranker", query, documents: Array.from({ length: count }, () => "this one") })
  t.match(await told(await ask(50)), { status: 200, charged: "3.8" })
  t.equal(held, Math.ceil(("ranker".length + 50 * (query.length + "this one".length)) / 3) * 1_000)
  t.match(await told(await ask(10_000)), { status: 402 })
})

t.test("an empty wallet ranks nothing, whatever the card counts", async t => {
  const price = { documents: "200 per documents" }
  const endpoints = await openEndpoints(t, { dear: modelOf("rerank", "cohere", { price }) })
  endpoints.vendor.answer = (_, response) => json(response, 200, { results: [{ index: 0, relevance_score: 0.5 }] })
  const ask = async (count: number) =>
    told(await endpoints.call("/rerank/", { model: "dear", query: "q", documents: documents.slice(0, count) }))
  t.match(await ask(6), { status: 402 })
  t.match(await ask(5), { status: 200, charged: "1000" })
  t.match(await ask(1), { status: 402 })
  t.equal(endpoints.vendor.received.length, 1)
})

t.test("each vendor is asked in its own words, for no more than there is", async t => {
  const endpoints = await open(t)
  const ask = async (model: string, more: object) => {
    endpoints.vendor.answer = (_, response) => json(response, 400, {})
    await endpoints.call("/rerank/", { model, query: "q", documents: ["a", { text: "b", title: "t" }], ...more })
    const { path, json: body } = endpoints.vendor.received.at(-1)!
    return { path, body: body() }
  }
  const body = { model: "vendor-model", query: "q", documents: ["a", "b"] }
  t.same(await ask("cohere", { top_n: 1, max_tokens_per_doc: 9, truncation: true }), {
    path: "/v2/rerank",
    body: { ...body, top_n: 1, max_tokens_per_doc: 9 },
  })
  t.same(await ask("voyage", { top_n: 9, truncation: true, return_documents: true }), {
    path: "/v1/rerank",
    body: { ...body, top_k: 2, truncation: true },
  })
  t.same(await ask("jina", { top_k: 1 }), { path: "/v1/rerank", body: { ...body, top_n: 1 } })
  t.same(await ask("hosted", { top_n: null }), { path: "/v1/rerank", body })
})

t.test("what cannot be ranked is refused before any vendor is called, and costs nothing", async t => {
  const endpoints = await open(t)
  const ask = async (body: object) => told(await endpoints.call("/rerank/", body))
  const invalid: readonly (readonly [object, readonly unknown[]])[] = [
    [{ documents: [] }, ["body", "documents"]],
    [{ documents: undefined }, ["body", "documents"]],
    [{ documents: "a" }, ["body", "documents"]],
    [{ documents: ["a", { title: "b" }] }, ["body", "documents", 1, "text"]],
    [{ documents: ["a", { text: 7 }] }, ["body", "documents", 1, "text"]],
    [{ documents: ["a", null] }, ["body", "documents", 1]],
    [{ query: "" }, ["body", "query"]],
    [{ query: ["q"] }, ["body", "query"]],
    [{ query: undefined }, ["body", "query"]],
    [{ top_n: 0 }, ["body", "top_n"]],
    [{ top_n: 1.5 }, ["body", "top_n"]],
    [{ top_k: -1 }, ["body", "top_k"]],
    [{ return_documents: "yes" }, ["body", "return_documents"]],
  ]
  for (const [change, loc] of invalid) {
    t.match(
      await ask({ model: "cohere", ...question, ...change }),
      { status: 422, detail: [{ loc }] },
      JSON.stringify(change),
    )
  }
  t.match(await ask({ model: "cohere", ...question, top_n: 1, top_k: 2 }), { status: 400, error: { param: "top_k" } })
  t.match(await ask({ model: "gpt", ...question }), { status: 404, detail: "Model 'gpt' not found" })
  t.same(endpoints.vendor.received, [])
  t.equal(await endpoints.spent(), 0)
})

t.test("answers that point nowhere, and vendors' errors, cost nothing", async t => {
  const endpoints = await open(t)
  const ask = async (model: string, status: number, body: unknown) => {
    endpoints.vendor.answer = (_, response) => json(response, status, body)
    return told(await endpoints.call("/rerank/", { model, ...question }))
  }
  const meta = { billed_units: { search_units: 1 } }
  const odd = [
    { results: [{ index: 6, relevance_score: 1 }], meta },
    { results: [{ index: -1, relevance_score: 1 }], meta },
    { results: [{ index: 0.5, relevance_score: 1 }], meta },
    {
      results: [
        { index: 0, relevance_score: 1 },
        { index: 0, relevance_score: 2 },
      ],
      meta,
    },
    { results: [{ index: 0 }], meta },
    { data: [], meta },
  ]
  for (const body of odd) t.match(await ask("cohere", 200, body), { status: 502, charged: null }, JSON.stringify(body))
  t.match(await ask("cohere", 400, { message: "too many documents" }), { status: 400, detail: "too many documents" })
  t.match(await ask("jina", 422, { detail: "bad" }), { status: 400, detail: "bad" })
  t.match(await ask("voyage", 429, { detail: "slow down" }), { status: 429, wait: "1" })
  t.match(await ask("hosted", 401, { error: { message: "Invalid API key", type: "invalid_request_error" } }), {
    status: 502,
  })
  t.equal(await endpoints.spent(), 0)
})

t.test("more than one search unit is more than one request of the price card", async t => {
  const endpoints = await open(t)
  const meta = { billed_units: { search_units: 3 } }
  endpoints.vendor.answer = (_, response) =>
    json(response, 200, { results: [{ index: 0, relevance_score: -4.5 }], meta })
  t.match(await told(await endpoints.call("/rerank/", { model: "cohere", ...question })), {
    charged: "6",
    results: [{ index: 0, relevance_score: -4.5 }],
  })
  t.equal(await endpoints.spent(), 6_000_000)
})

t.test("results come best first, each document at most once, never more than asked for", async t => {
  const sent = fc
    .array(fc.string(), { minLength: 1, maxLength: 20 })
    .chain(texts =>
      fc.tuple(fc.constant(texts), fc.integer({ min: 1, max: 30 }), fc.shuffledSubarray(texts.map((_, at) => at))),
    )
  fc.assert(
    fc.property(sent, fc.infiniteStream(fc.double({ noNaN: true })), ([texts, top_n, indexes], scores) => {
      const results = indexes.map(index => ({ index, relevance_score: scores.next().value as number }))
      const request = requestOf({ query: "q", documents: texts, top_n })
      const answer = answerOf({ results }, request, { id: "r", tokens: 0, withTexts: true })
      const told = answer.results.map(result => result.relevance_score)
      t.ok(
        answer.results.length === Math.min(top_n, indexes.length) &&
          told.every((score, at) => at === 0 || score <= told[at - 1]!) &&
          new Set(answer.results.map(result => result.index)).size === answer.results.length &&
          answer.results.every(result => result.document?.text === texts[result.index]),
      )
    }),
  )
})

t.test("the sandbox's vendors rank alike", async t => {
  const at = (vendor: string, model: string) => ({ ...modelOf("rerank", vendor), targets: [{ vendor, model }] })
  const gateway = await openSandboxed(
    t,
    {
      cohere: at("cohere", "rerank-v3.5"),
      voyage: at("voyage", "rerank-2.5"),
      jina: at("jina", "jina-reranker-v2"),
      together: at("openai", "Salesforce/Llama-Rank-v1"),
    },
    Object.fromEntries(
      ["cohere", "voyage", "jina", "openai"].map(name => [name, { origin: `https://${name}.invalid`, secrets: [] }]),
    ),
  )
  const request = { query: "red apples", documents: ["blue pears", "red apples grow", "red cars"], top_n: 2 }
  for (const model of ["cohere", "voyage", "jina", "together"]) {
    const answer = await told(await gateway.call("/rerank/", { model, ...request }))
    t.match(answer, { status: 200, model, results: [{ index: 1 }, { index: 2 }] })
    t.equal((answer.results as unknown[]).length, 2)
  }
})
