/** Embeddings on every wire: requests as the vendors want them, vectors as clients want them, charges by recorded counts. */
import fc from "fast-check"
import OpenAI from "openai"
import t, { type Test } from "tap"
import { estimatedInput } from "../../core/index.ts"
import { base64Of, floatsOf } from "../../plugins/embeddings/vectors.ts"
import { modelOf, openEndpoints, openSandboxed, told, vendorKey } from "../fixtures/endpoints.ts"
import { json } from "../fixtures/product.ts"
import { recorded } from "../fixtures/recorded.ts"

const models = Object.fromEntries(
  ["openai", "google", "cohere", "voyage", "jina"].map(vendor => [vendor, modelOf("embedding", vendor)]),
)
interface Embeddings {
  readonly data: readonly { readonly embedding: unknown }[]
}
const open = (t: Test) => openEndpoints(t, models)
const bodyOf = (vendor: string, file: string) => recorded(vendor, file)[0]!

const recordedAnswers = [
  { model: "openai", from: "openai-embeddings", file: "openai-embedding.json", texts: 2, tokens: 12 },
  { model: "cohere", from: "cohere", file: "cohere-embedding.json", texts: 2, tokens: 10 },
  { model: "voyage", from: "voyage", file: "voyage-embed-query.exchange.json", texts: 1, tokens: 3 },
  { model: "openai", from: "openai-embeddings", file: "openai-embed-query.exchange.json", texts: 1, tokens: 4 },
  { model: "google", from: "google", file: "google-embed-query-with-dimensions.exchange.json", texts: 1 },
]

t.test(
  "each recorded answer is given in both codings, with the same numbers, and charged by its own counts",
  async t => {
    const endpoints = await open(t)
    let expected = 0
    for (const { model, from, file, texts, tokens } of recordedAnswers) {
      const { body } = bodyOf(from, file)
      endpoints.vendor.answer = (_, response) => json(response, 200, JSON.parse(body.toString()))
      const request = { model, input: Array.from({ length: texts }, () => "Hello, world!") }
      const answers: (Embeddings & { readonly counted: number })[] = []
      for (const encoding_format of ["float", "base64"]) {
        const sent = JSON.stringify({ ...request, encoding_format })
        const response = await endpoints.call("/embeddings/", sent)
        t.equal(response.status, 200, file)
        // Without counts of the vendor the estimate of the hold is the bill: every text of the body, its model's name included.
        const textBytes = Buffer.byteLength([model, ...request.input, encoding_format].join(""))
        const counted = tokens ?? estimatedInput({ textBytes, images: 0, files: 0 })
        expected += counted * 1000
        t.equal(response.headers.get("x-credits-charged"), String(counted / 1000), file)
        answers.push({ ...((await response.json()) as Embeddings), counted })
      }
      const [floats, coded] = answers as unknown as readonly [Embeddings, Embeddings]
      for (const answer of answers) {
        t.match(answer, {
          object: "list",
          model,
          usage: { prompt_tokens: answer.counted, total_tokens: answer.counted },
        })
      }
      t.equal(floats.data.length, texts)
      for (const [index, { embedding }] of floats.data.entries()) {
        t.match(coded.data[index], { object: "embedding", index, embedding: String })
        const base64 = coded.data[index]?.embedding as string
        t.same(floatsOf(base64), (embedding as number[]).map(Math.fround), file)
      }
      t.equal(await endpoints.spent(), expected, file)
    }
    t.notMatch(
      await endpoints.metrics(),
      /usage_unpriced_total\{.*\} [1-9]/,
      "vectors have no output that lacks a price",
    )
  },
)

t.test("a card by characters charges what was sent, whatever the vendor reports", async t => {
  const price = { characters: "1 per characters" }
  const endpoints = await openEndpoints(t, { letters: modelOf("embedding", "openai", { price }) })
  const charge = async (input: unknown, usage?: object) => {
    const data = [{ object: "embedding", index: 0, embedding: [1] }]
    endpoints.vendor.answer = (_, response) => json(response, 200, { object: "list", data, usage })
    return (await endpoints.call("/embeddings/", { model: "letters", input })).headers.get("x-credits-charged")
  }
  t.equal(await charge("hello"), "5")
  t.equal(await charge(["hello", "you"], { prompt_tokens: 3, total_tokens: 3 }), "8")
  t.equal(await charge([1, 2, 3]), "12", "a token counts as four")
  t.equal(await charge([[1], [2, 3]]), "12")
  t.notMatch(await endpoints.metrics(), /usage_unpriced_total\{.*\} [1-9]/)
  t.equal((await endpoints.call("/embeddings/", { model: "letters", input: "x".repeat(2000) })).status, 402)
})

t.test("a card by tokens charges the estimate where the vendor tells only its cost", async t => {
  const endpoints = await openEndpoints(t, { vectors: modelOf("embedding", "openai") })
  const data = [{ object: "embedding", index: 0, embedding: [1] }]
  const cost = { cost_in_usd_ticks: 10_000_000_000 }
  const estimate = Math.ceil("vectorshello".length / 3)
  for (const usage of [cost, null, { prompt_tokens: null }]) {
    endpoints.vendor.answer = (_, response) => json(response, 200, { object: "list", data, usage })
    const response = await endpoints.call("/embeddings/", { model: "vectors", input: "hello" })
    t.equal(response.headers.get("x-credits-charged"), String(estimate / 1000))
    const counts = { prompt_tokens: estimate, total_tokens: estimate }
    t.match(await response.json(), { usage: usage === cost ? { ...cost, ...counts } : counts }, "and tells it")
  }
})

t.test("a vendor's only count is both of the client's", async t => {
  const endpoints = await openEndpoints(t, { vectors: modelOf("embedding", "openai") })
  const data = [{ object: "embedding", index: 0, embedding: [1] }]
  for (const usage of [{ total_tokens: 7 }, { input_tokens: 7 }, { prompt_tokens: 7 }]) {
    endpoints.vendor.answer = (_, response) => json(response, 200, { object: "list", data, usage })
    const response = await endpoints.call("/embeddings/", { model: "vectors", input: "hello" })
    t.match(await response.json(), { usage: { ...usage, prompt_tokens: 7, total_tokens: 7 } })
  }
})

t.test("tokens that the client made are held, and billed where the vendor counts nothing, as so many", async t => {
  const endpoints = await openEndpoints(t, { vectors: modelOf("embedding", "openai") })
  const tokens = Array.from({ length: 900 }, (_, at) => 10_000 + at)
  for (const input of [tokens, [tokens.slice(0, 400), tokens.slice(400)]]) {
    endpoints.vendor.answer = (_, response) =>
      json(response, 200, { object: "list", data: [{ object: "embedding", index: 0, embedding: [1] }] })
    const response = await endpoints.call("/embeddings/", { model: "vectors", input })
    t.equal(response.headers.get("x-credits-charged"), "0.9")
    t.match(await response.json(), { usage: { prompt_tokens: 900 } })
  }
  const many = { model: "vectors", input: Array.from({ length: 6 }, () => Array.from({ length: 49_000 }, () => 7)) }
  t.equal((await endpoints.call("/embeddings/", many)).headers.get("x-credits-charged"), "294")
})

t.test("vectors survive base64 as 32-bit floats", async t => {
  const vector = fc.array(fc.float({ noNaN: true }), { maxLength: 64 })
  fc.assert(fc.property(vector, numbers => t.same(floatsOf(base64Of(numbers)), numbers)))
})

t.test("each vendor is asked in its own words", async t => {
  const endpoints = await open(t)
  const ask = async (model: string, more: object = {}) => {
    endpoints.vendor.answer = (_, response) => json(response, 400, {})
    await endpoints.call("/embeddings/", { model, input: ["a", "b"], dimensions: 8, ...more })
    const { path, headers, json: body } = endpoints.vendor.received.at(-1)!
    return { path, key: headers.authorization ?? headers["x-goog-api-key"], body: body() }
  }
  const key = `Bearer ${vendorKey}`
  t.same(await ask("cohere"), {
    path: "/v2/embed",
    key,
    body: {
      model: "vendor-model",
      texts: ["a", "b"],
      input_type: "search_document",
      embedding_types: ["float"],
      output_dimension: 8,
    },
  })
  t.same(await ask("voyage", { input_type: "search_query", encoding_format: "base64" }), {
    path: "/v1/embeddings",
    key,
    body: {
      model: "vendor-model",
      input: ["a", "b"],
      input_type: "query",
      output_dimension: 8,
      encoding_format: "base64",
    },
  })
  t.same(await ask("jina", { input_type: "classification" }), {
    path: "/v1/embeddings",
    key,
    body: { model: "vendor-model", input: ["a", "b"], task: "classification", dimensions: 8 },
  })
  const one = { model: "models/vendor-model", taskType: "RETRIEVAL_QUERY", outputDimensionality: 8 }
  t.same(await ask("google", { input_type: "query" }), {
    path: "/v1beta/models/vendor-model:batchEmbedContents",
    key: vendorKey,
    body: { requests: ["a", "b"].map(text => ({ ...one, content: { parts: [{ text }] } })) },
  })
  t.match(await ask("cohere", { input_type: "query", truncate: "END" }), {
    body: { input_type: "search_query", truncate: "END" },
  })
  t.notOk(
    "input_type" in (await ask("voyage", { input_type: "clustering" })).body,
    "a kind that the vendor does not know",
  )
})

t.test("tokens and batches that a vendor does not take are refused before it is called, and cost nothing", async t => {
  const endpoints = await open(t)
  const refusal = async (body: object) => told(await endpoints.call("/embeddings/", body))
  for (const model of ["cohere", "voyage", "jina", "google"]) {
    for (const input of [
      [1, 2],
      [[1], [2]],
      ["a", 1],
    ]) {
      t.match(await refusal({ model, input }), { status: 400, error: { param: "input", message: /texts/ } })
    }
  }
  const many = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`)
  t.match(await refusal({ model: "cohere", input: many(97) }), { status: 400, error: { message: /at most 96 texts/ } })
  t.match(await refusal({ model: "google", input: many(101) }), {
    status: 400,
    error: { message: /at most 100 texts/ },
  })
  t.match(await refusal({ model: "voyage", input: many(1001) }), { status: 400, error: { message: /at most 1000/ } })
  for (const input of ["", [], [""], many(2049), 7, null, { text: "a" }]) {
    t.match(await refusal({ model: "openai", input }), { status: 422, detail: [{ loc: ["body", "input"] }] })
  }
  t.match(await refusal({ model: "openai" }), { status: 422, detail: [{ type: "missing" }] })
  t.match(await refusal({ model: "nobody", input: "a" }), { status: 404, detail: "Model 'nobody' not found" })
  t.same(endpoints.vendor.received, [])
  t.equal(await endpoints.spent(), 0)
})

t.test(
  "vendors' errors keep their words where the client is at fault, say nothing where we are, and cost nothing",
  async t => {
    const endpoints = await open(t)
    const ask = async (model: string, status: number, body: unknown) => {
      endpoints.vendor.answer = (_, response) => json(response, status, body)
      return told(await endpoints.call("/embeddings/", { model, input: "Hello, world!" }))
    }
    const failed = (vendor: string) => {
      const { status, body } = bodyOf(vendor, `${vendor}-embed-embed-error.exchange.json`)
      return [vendor, status, JSON.parse(body.toString())] as const
    }
    t.match(await ask(...failed("cohere")), { status: 400, detail: /^model 'nonexistent' not found/ })
    t.match(await ask(...failed("voyage")), { status: 400, detail: /^Model nonexistent is not supported/ })
    t.match(await ask(...failed("google")), { status: 400, detail: /nonexistent-model is not found/ })
    t.match(await ask("jina", 422, { detail: [{ loc: ["body"], msg: "too long" }] }), {
      status: 400,
      detail: "too long",
    })
    t.match(await ask("cohere", 429, { message: "rate limit" }), { status: 429, wait: "1" })
    t.match(await ask("voyage", 500, { detail: "oops" }), { status: 500 })
    t.match(await ask("jina", 503, { detail: "busy" }), { status: 502 })
    t.equal(await endpoints.spent(), 0)
  },
)

t.test("our account's faults become 502 without a word of the vendor's", async t => {
  const faults: readonly (readonly [string, number, object])[] = [
    ["cohere", 401, { message: "invalid api token" }],
    ["cohere", 429, { message: "You are using a Trial key, which is limited to 1000 API calls / month" }],
    ["voyage", 429, { detail: "You have not yet added your payment method in the billing page" }],
    ["jina", 402, { detail: "Insufficient balance" }],
  ]
  for (const [model, status, body] of faults) {
    const endpoints = await open(t)
    endpoints.vendor.answer = (_, response) => json(response, status, body)
    const response = await endpoints.call("/embeddings/", { model, input: "a" })
    t.equal(response.status, 502, `${model} ${status}`)
    t.notMatch(await response.text(), /token|Trial|payment|balance/i)
    t.equal(await endpoints.spent(), 0)
  }
})

t.test("an answer that cannot be read is a 502 that costs nothing", async t => {
  const endpoints = await open(t)
  const odd: readonly (readonly [string, unknown])[] = [
    ["cohere", { embeddings: { float: [[1], [2]] } }],
    ["cohere", { embeddings: { int8: [[1]] }, meta: { billed_units: { input_tokens: 4 } } }],
    ["cohere", { embeddings: { float: [["x"]] } }],
    ["cohere", { embeddings: { float: [[]] } }],
    ["voyage", { data: [], usage: { total_tokens: 3 } }],
    ["jina", { data: [{ embedding: null }], usage: { total_tokens: 3 } }],
    ["google", {}],
    ["openai", { data: "none" }],
  ]
  for (const [model, body] of odd) {
    endpoints.vendor.answer = (_, response) => json(response, 200, body)
    t.equal((await endpoints.call("/embeddings/", { model, input: "a" })).status, 502, JSON.stringify(body))
  }
  t.equal(await endpoints.spent(), 0)
})

t.test("the official client decodes what the sandbox's vendors answer", async t => {
  const targets = (vendor: string, model: string) => ({ ...modelOf("embedding", vendor), targets: [{ vendor, model }] })
  const gateway = await openSandboxed(
    t,
    {
      small: targets("openai", "text-embedding-3-small"),
      gemini: targets("google", "gemini-embedding-001"),
      embed: targets("cohere", "embed-v4.0"),
      voyage: targets("voyage", "voyage-3.5"),
      jina: targets("jina", "jina-embeddings-v3"),
    },
    Object.fromEntries(
      ["openai", "google", "cohere", "voyage", "jina"].map(name => [
        name,
        { origin: `https://${name}.invalid`, secrets: [] },
      ]),
    ),
  )
  const client = new OpenAI({ apiKey: gateway.key, baseURL: gateway.url, maxRetries: 0 })
  for (const model of ["small", "gemini", "embed", "voyage", "jina"]) {
    const request = { model, input: ["a", "b"], dimensions: 16 }
    const coded = await client.embeddings.create(request)
    const plain = await client.embeddings.create({ ...request, encoding_format: "float" })
    t.same(coded.data, plain.data, model)
    t.equal(coded.data[1]?.embedding.length, 16)
    t.ok(coded.usage.prompt_tokens > 0)
  }
})

t.test("a field that a wire cannot say is refused by name, not dropped; what it can say passes", async t => {
  const endpoints = await open(t)
  const ask = async (body: object) => told(await endpoints.call("/embeddings/", { input: "a", ...body }))
  for (const model of ["google", "cohere", "voyage", "jina"]) {
    t.match(await ask({ model, made_up: 1 }), { status: 400, error: { param: "made_up" } }, model)
  }
  t.same(endpoints.vendor.received, [])
  t.equal(await endpoints.spent(), 0)
  endpoints.vendor.answer = (_, response) => json(response, 400, { detail: "asked" })
  t.match(await ask({ model: "voyage", truncation: false, user: "u", made_up: null }), { status: 400, detail: "asked" })
})
