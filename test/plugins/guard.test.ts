/** Guard: moderation APIs and guard LLMs, one shape, charged by what the vendor counts; nothing unclear is called safe. */
import t, { type Test } from "tap"
import { verdictOf } from "../../plugins/guard/categories.ts"
import { modelOf, openEndpoints, openSandboxed, told } from "../fixtures/endpoints.ts"
import { chatAnswer, json } from "../fixtures/product.ts"

const llm = { capabilities: ["chat"], price: { input: "1000 per 1M tokens", output: "2000 per 1M tokens" } }
const models = {
  omni: modelOf("guard", "openai", { price: { requests: "1 per requests" } }),
  free: modelOf("guard", "openai", { price: { requests: "0 per requests" } }),
  llama: modelOf("guard", "openai", llm),
  gpt: modelOf("llm", "openai"),
}
const open = (t: Test) => openEndpoints(t, models)
const saying = (content: unknown) => ({
  ...chatAnswer,
  choices: [{ index: 0, message: { role: "assistant", content } }],
})

t.test("a moderation keeps the vendor's numbers, with one word for all results on top", async t => {
  const endpoints = await open(t)
  const results = [false, true].map(flagged => ({
    flagged,
    categories: { hate: flagged },
    category_scores: { hate: 0.25 },
  }))
  endpoints.vendor.answer = (_, response) => json(response, 200, { id: "modr-1", model: "vendor-model", results })
  const answer = await told(await endpoints.call("/guard/", { model: "omni", input: ["a", "b"], user: "u" }))
  t.same(answer, { status: 200, wait: null, charged: "1", flagged: true, id: "modr-1", model: "omni", results })
  const [{ path, json: body }] = endpoints.vendor.received as [(typeof endpoints.vendor.received)[0]]
  t.same([path, body()], ["/v1/moderations", { model: "vendor-model", input: ["a", "b"] }])
  endpoints.vendor.answer = (_, response) => json(response, 200, { id: "m", model: "v", results: results.slice(0, 1) })
  t.match(await told(await endpoints.call("/guard/", { model: "free", input: "a" })), { charged: "0", flagged: false })
  t.equal(await endpoints.spent(), 1_000_000)
})

t.test("a guard LLM is asked by chat, and its codes become categories", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (_, response) => json(response, 200, saying("\n\nunsafe\nS1,S10"))
  const answer = await told(await endpoints.call("/guard/", { model: "llama", input: "bad words" }))
  t.match(answer, { status: 200, charged: "0.05", flagged: true, id: /^modr-/, model: "llama" })
  const [result] = answer.results as [{ categories: Record<string, boolean>; category_scores: Record<string, number> }]
  const raised = Object.keys(result.categories).filter(name => result.categories[name])
  t.same(raised.sort(), ["hate", "illicit/violent"])
  t.same([result.category_scores.hate, result.category_scores.sexual], [1, 0])
  t.match(endpoints.vendor.received[0]?.json(), {
    model: "vendor-model",
    messages: [{ role: "user", content: "bad words" }],
    max_tokens: 64,
    temperature: 0,
  })
  const parts = [
    { type: "text", text: "what is it" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
  ]
  endpoints.vendor.answer = (_, response) => json(response, 200, saying("safe"))
  t.match(await told(await endpoints.call("/guard/", { model: "llama", input: parts })), { flagged: false })
  t.same(endpoints.vendor.received[1]?.json().messages, [{ role: "user", content: parts }])
  t.equal(await endpoints.spent(), 2 * (10 * 1000 + 20 * 2000))
})

t.test("a card by tokens charges the estimate where the vendor counts nothing", async t => {
  const words = modelOf("guard", "openai")
  const endpoints = await openEndpoints(t, { words, llama: { ...words, capabilities: ["chat"] } })
  const estimated = (model: string) => Math.ceil(Buffer.byteLength(`${model}bad words`) / 3)
  const ask = async (model: string) =>
    (await told(await endpoints.call("/guard/", { model, input: "bad words" }))).charged
  const results = [{ flagged: true, categories: {}, category_scores: {} }]
  endpoints.vendor.answer = (_, response) => json(response, 200, { results })
  t.equal(await ask("words"), String(estimated("words") / 1000))
  endpoints.vendor.answer = (_, response) => json(response, 200, { ...saying("safe"), usage: undefined })
  t.equal(await ask("llama"), String(estimated("llama") / 1000))
  const cached = { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 9 } }
  endpoints.vendor.answer = (_, response) => json(response, 200, { ...saying("safe"), usage: cached })
  t.equal(await ask("llama"), "0.009", "what came from a cache is not estimated again")
})

t.test("the words of a verdict", async t => {
  const flags = (text: string) => {
    const { flagged, categories } = verdictOf(text)
    return [flagged, Object.keys(categories).filter(name => categories[name])]
  }
  t.same(flags("safe"), [false, []])
  t.same(flags(" Safe\n"), [false, []])
  t.same(flags("unsafe"), [true, []])
  t.same(flags("unsafe\ns4, S12"), [true, ["sexual", "sexual/minors"]])
  t.same(flags("unsafe\nS7"), [true, ["privacy"]])
  t.same(flags("unsafe S99"), [true, []], "a code of a later version")
  for (const text of ["", "safely", "not safe", "I think it is safe", "safe unsafe", "unsafe because of S1", "{}"]) {
    t.throws(() => verdictOf(text), { code: "upstream_unreadable" }, text)
  }
})

t.test("an answer that is no verdict is a 502 that costs nothing", async t => {
  const endpoints = await open(t)
  for (const body of [saying("Sure! It looks fine."), saying(null), { ...chatAnswer, choices: [] }, { results: [] }]) {
    endpoints.vendor.answer = (_, response) => json(response, 200, body)
    for (const model of ["llama", "omni"]) {
      t.equal((await endpoints.call("/guard/", { model, input: "a" })).status, 502, JSON.stringify(body))
    }
  }
  t.equal(await endpoints.spent(), 0)
})

t.test("what cannot be judged is refused before any vendor is called", async t => {
  const endpoints = await open(t)
  const ask = async (body: object) => told(await endpoints.call("/guard/", body))
  t.match(await ask({ model: "llama", input: ["a", "b"] }), {
    status: 400,
    error: { param: "input", message: /one text/ },
  })
  for (const input of ["", [], [7], [{ type: "audio" }], ["a", { type: "text" }], null, undefined, {}]) {
    t.match(await ask({ model: "omni", input }), { status: 422 }, JSON.stringify(input))
  }
  t.match(await ask({ input: "a" }), { status: 422, detail: [{ loc: ["body", "model"], type: "missing" }] })
  t.match(await ask({ model: "gpt", input: "a" }), { status: 404, detail: "Model 'gpt' not found" })
  t.same(endpoints.vendor.received, [])
  t.equal(await endpoints.spent(), 0)
})

t.test("vendors' errors have their documented places and cost nothing", async t => {
  const endpoints = await open(t)
  const ask = async (status: number, error: object) => {
    endpoints.vendor.answer = (_, response) => json(response, status, { error })
    return told(await endpoints.call("/guard/", { model: "omni", input: "a" }))
  }
  t.match(await ask(400, { message: "too many images", type: "invalid_request_error" }), {
    status: 400,
    detail: "too many images",
  })
  t.match(await ask(429, { message: "slow", type: "requests" }), { status: 429, wait: "1" })
  t.match(await ask(503, { message: "busy" }), { status: 502 })
  t.match(await ask(401, { message: "bad key", code: "invalid_api_key" }), { status: 502 })
  t.equal(await endpoints.spent(), 0)
})

t.test("the sandbox judges by both kinds of guard", async t => {
  const at = (model: string, more: object) => ({
    ...modelOf("guard", "openai", more),
    targets: [{ vendor: "openai", model }],
  })
  const gateway = await openSandboxed(
    t,
    { omni: at("omni-moderation-latest", {}), llama: at("meta-llama/llama-guard-4-12b", llm) },
    { openai: { origin: "https://openai.invalid", secrets: [] } },
  )
  for (const model of ["omni", "llama"]) {
    const call = async (input: unknown) => told(await gateway.call("/guard/", { model, input }))
    t.match(await call("a flower"), { status: 200, flagged: false, results: [{ flagged: false }] }, model)
    t.match(
      await call("how to build a bomb"),
      { flagged: true, results: [{ categories: { "illicit/violent": true } }] },
      model,
    )
  }
})
