/** Chat requests towards the generate-content wire: fields, limits, thinking, formats. */
import t from "tap"
import { budgets, configOf, draft, levels, sent } from "../fixtures/google-chat.ts"

const refuses = (param: string) => ({ code: "invalid_request", param })

t.test("the model stands in the path, and a stream is asked for as events", async t => {
  t.equal(draft({}).path, "/v1beta/models/their-model:generateContent")
  t.equal(draft({ stream: true }).path, "/v1beta/models/their-model:streamGenerateContent?alt=sse")
  t.equal(draft({}, { target: "tuned/a b" }).path, "/v1beta/models/tuned%2Fa%20b:generateContent")
  t.same(draft({ stream: true }).body, { contents: [{ role: "user", parts: [{ text: "Hi" }] }] })
})

t.test("sampling fields get their names on this wire", async t => {
  const fields = {
    temperature: 0,
    top_p: 0.5,
    top_k: 3,
    seed: 0,
    presence_penalty: 0.1,
    frequency_penalty: -1,
    logprobs: true,
    top_logprobs: 2,
    n: 2,
    stop: ["a", "", "b"],
  }
  t.same(configOf(fields), {
    temperature: 0,
    topP: 0.5,
    topK: 3,
    seed: 0,
    presencePenalty: 0.1,
    frequencyPenalty: -1,
    responseLogprobs: true,
    logprobs: 2,
    candidateCount: 2,
    stopSequences: ["a", "b"],
  })
  t.same(configOf({ stop: "END", n: 1, logprobs: false }), { stopSequences: ["END"] })
  t.equal(configOf({ temperature: null, stop: null, n: null, stream_options: null }), undefined)
})

t.test("the limit of tokens is the newer field's, and never more than the model has", async t => {
  t.same(configOf({ max_tokens: 9 }), { maxOutputTokens: 9 })
  t.same(configOf({ max_tokens: 9, max_completion_tokens: 5 }), { maxOutputTokens: 5 })
  t.same(configOf({ max_tokens: 90 }, { maxOutput: 64 }), { maxOutputTokens: 64 })
})

t.test("more than the vendor takes is refused by the name of its field", async t => {
  t.throws(() => sent({ stop: ["a", "b", "c", "d", "e", "f"] }), refuses("stop"))
  t.same(configOf({ stop: ["a", "b", "c", "d", "e"] }), { stopSequences: ["a", "b", "c", "d", "e"] })
  t.throws(() => sent({ n: 9 }), refuses("n"))
})

t.test("bug 29: fields that only OpenAI knows are never forwarded", async t => {
  const hints = {
    stream: true,
    stream_options: { include_usage: true },
    store: false,
    user: "u",
    metadata: { a: "b" },
    verbosity: "low",
    service_tier: "auto",
    safety_identifier: "s",
    prompt_cache_key: "k",
    prediction: { type: "content", content: "x" },
    modalities: ["text"],
    logit_bias: {},
  }
  t.same(Object.keys(sent(hints)), ["contents"])
})

t.test("bug 20: whether tools are called in parallel has no counterpart and is not sent", async t => {
  const tools = [{ type: "function", function: { name: "f" } }]
  t.same(sent({ tools, parallel_tool_calls: false }), sent({ tools }))
})

t.test("what changes the answer and has no counterpart is refused by its name", async t => {
  const fields = {
    logit_bias: { 5: 1 },
    modalities: ["text", "audio"],
    audio: { voice: "v" },
    web_search_options: {},
    functions: [{ name: "f" }],
    moderation: {},
    whatever: 0,
    constructor: 1,
  }
  for (const [name, value] of Object.entries(fields)) t.throws(() => sent({ [name]: value }), refuses(name), name)
  t.doesNotThrow(() => sent({ audio: null, whatever: null }))
})

t.test("models of 2.5 think by a budget", async t => {
  const config = (fields: object) => configOf(fields, { rules: budgets })
  const budget = (thinkingBudget: number) => ({
    thinkingConfig: { thinkingBudget, includeThoughts: thinkingBudget > 0 },
  })
  t.same(config({ reasoning_effort: "low" }), budget(1024))
  t.same(config({ reasoning_effort: "minimal" }), budget(1024))
  t.same(config({ reasoning_effort: "medium" }), budget(8192))
  t.same(config({ reasoning_effort: "xhigh" }), budget(24576))
  t.same(config({ reasoning_effort: "none" }), budget(0))
  t.same(config({ thinking_budget: 2048 }), budget(1024))
  t.same(config({ thinking_budget: 2049 }), budget(8192))
  t.same(config({ thinking_budget: 16385 }), budget(24576))
})

t.test("later models think by a level, where they have it", async t => {
  const config = (fields: object, efforts?: readonly string[]) =>
    configOf(fields, { rules: efforts === undefined ? levels : { efforts } })
  const level = (thinkingLevel: string, includeThoughts = true) => ({
    thinkingConfig: { thinkingLevel, includeThoughts },
  })
  t.same(config({ reasoning_effort: "minimal" }), level("MINIMAL"))
  t.same(config({ reasoning_effort: "minimal" }, ["low", "high"]), level("LOW"))
  t.same(config({ reasoning_effort: "medium" }), level("MEDIUM"))
  t.same(config({ reasoning_effort: "medium" }, ["low", "high"]), level("HIGH"))
  t.same(config({ reasoning_effort: "max" }), level("HIGH"))
  t.same(config({ reasoning_effort: "none" }), level("MINIMAL", false))
  t.same(config({ thinking_level: "minimal" }), level("LOW"), "minimal is treated as low (specification 4.2)")
  t.same(config({ thinking_budget: 30_000 }), level("HIGH"))
})

t.test("the level wins over the budget, and both are never sent", async t => {
  const fields = { thinking_level: "low", thinking_budget: 30_000, reasoning_effort: "high" }
  t.same(configOf(fields), { thinkingConfig: { thinkingLevel: "LOW", includeThoughts: true } })
  t.same(configOf(fields, { rules: budgets }), { thinkingConfig: { thinkingBudget: 1024, includeThoughts: true } })
})

t.test("a budget of 0 or -1 leaves it to the model", async t => {
  for (const thinking_budget of [0, -1]) t.equal(configOf({ thinking_budget }), undefined)
})

t.test("thinking that the model cannot do is refused by the field that asked for it", async t => {
  const without = { capabilities: ["tools"] }
  for (const fields of [{ reasoning_effort: "low" }, { thinking_level: "low" }, { thinking_budget: 5 }]) {
    t.throws(() => sent(fields, without), refuses(Object.keys(fields)[0] ?? ""))
  }
  const always = { rules: { effort_budgets: { low: 1, medium: 2, high: 3 } } }
  t.throws(() => sent({ reasoning_effort: "none" }, always), refuses("reasoning_effort"))
  t.throws(() => sent({ reasoning_effort: "much" }), refuses("reasoning_effort"))
  t.throws(() => sent({ reasoning_effort: "constructor" }, { rules: budgets }), refuses("reasoning_effort"))
  t.throws(() => sent({ thinking_level: "none" }), refuses("thinking_level"))
  t.throws(() => sent({ thinking_budget: -5 }), refuses("thinking_budget"))
})

const schema = { $schema: "x", type: "object", properties: { a: { const: "b" } }, additionalProperties: false }
const json_schema = { name: "n", strict: true, schema }

t.test("an answer in JSON is asked for by type and schema", async t => {
  t.same(configOf({ response_format: { type: "json_object" } }), { responseMimeType: "application/json" })
  const { $schema, ...plain } = schema
  t.same(configOf({ response_format: { type: "json_schema", json_schema } }), {
    responseMimeType: "application/json",
    responseJsonSchema: plain,
  })
  t.same(configOf({ response_format: { type: "json_schema", json_schema } }, { capabilities: ["reasoning"] }), {
    responseMimeType: "application/json",
    responseSchema: { type: "object", properties: { a: { type: "string", enum: ["b"] } } },
  })
  t.equal(configOf({ response_format: { type: "text" } }), undefined)
})

t.test("JSON beside tools goes to the models that take both", async t => {
  const fields = { response_format: { type: "json_object" }, tools: [{ type: "function", function: { name: "f" } }] }
  t.match(sent(fields), { generationConfig: { responseMimeType: "application/json" }, tools: [{}] })
  t.throws(() => sent(fields, { rules: budgets }), refuses("response_format"))
  t.throws(() => sent({ response_format: { type: "grammar" } }), refuses("response_format"))
})

t.test("the client's request is not changed", async t => {
  const frozen = (value: unknown): unknown => {
    if (typeof value === "object" && value !== null)
      for (const inner of Object.values(Object.freeze(value))) frozen(inner)
    return value
  }
  const fields = {
    messages: [
      { role: "system", content: "s" },
      { role: "user", content: [{ type: "text", text: "a" }] },
    ],
    tools: [{ type: "function", function: { name: "a b", parameters: schema } }],
    response_format: { type: "json_schema", json_schema },
  }
  t.doesNotThrow(() => sent(frozen(structuredClone(fields)) as object))
})
