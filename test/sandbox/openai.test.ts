import OpenAI from "openai"
import t, { type Test } from "tap"
import { estimateTokens } from "../../plugins/sandbox/tokens.ts"
import { collect, openSandbox, refusalOf } from "./helpers.ts"

const open = async (t: Test, path = "/v1"): Promise<OpenAI> => {
  const sandbox = await openSandbox(t)
  return new OpenAI({ apiKey: "sandbox", baseURL: sandbox.origin + path, maxRetries: 0 })
}

const weather = {
  type: "object",
  properties: {
    city: { type: "string" },
    unit: { enum: ["celsius", "fahrenheit"] },
    days: { type: "integer", minimum: 2 },
  },
  required: ["city"],
}
const tools = [{ type: "function" as const, function: { name: "weather", parameters: weather } }]
const ask = (content: string) => [{ role: "user" as const, content }]

t.test("a chat is answered whole, with counts that add up", async t => {
  const client = await open(t)
  const answer = await client.chat.completions.create({ model: "gpt-4.1", messages: ask("What is 12 * 12?") })
  t.match(answer, {
    id: /^chatcmpl-/,
    object: "chat.completion",
    model: "gpt-4.1",
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "12 * 12 = 144" } }],
    usage: { completion_tokens: estimateTokens("12 * 12 = 144") },
  })
  const usage = answer.usage!
  t.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
})

t.test("a streamed chat says the same as the whole one, and reports usage only when asked", async t => {
  const client = await open(t)
  const request = { model: "gpt-4.1", messages: ask("Count to 30") }
  const whole = await client.chat.completions.create(request)
  for (const include_usage of [true, false]) {
    const stream = await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage } })
    const chunks = await collect(stream)
    t.equal(chunks.map(chunk => chunk.choices[0]?.delta.content ?? "").join(""), whole.choices[0]?.message.content)
    t.same(chunks.at(include_usage ? -2 : -1)?.choices[0]?.finish_reason, "stop")
    t.same(chunks.at(-1)?.usage, include_usage ? whole.usage : undefined)
    t.equal(new Set(chunks.map(chunk => chunk.id)).size, 1)
  }
})

t.test("a tool is called with arguments that fit its schema, and its result is told", async t => {
  const client = await open(t, "/openai/v1")
  const model = "gpt-4.1"
  const asked = ask("How is the weather in Seoul?")
  const whole = await client.chat.completions.create({ model, messages: asked, tools })
  const message = whole.choices[0]!.message
  t.equal(whole.choices[0]?.finish_reason, "tool_calls")
  const call = message.tool_calls![0]!
  t.match(call, { id: /^call_/, type: "function", function: { name: "weather" } })
  t.same(JSON.parse((call as { function: { arguments: string } }).function.arguments), {
    city: "Seoul",
    unit: "celsius",
    days: 2,
  })
  const streamed = client.chat.completions.stream({ model, messages: asked, tools })
  t.match((await streamed.finalChatCompletion()).choices[0]?.message.tool_calls, [
    { function: call.type === "function" ? call.function : {} },
  ])
  const told = [...asked, message, { role: "tool" as const, tool_call_id: call.id, content: "rain" }]
  const after = await client.chat.completions.create({ model, messages: told, tools })
  t.match(after.choices[0], { finish_reason: "stop", message: { content: "The tool answered: rain" } })
})

t.test("an answer ends at its limit, at a stop sequence, and comes n times", async t => {
  const client = await open(t)
  const model = "gpt-4.1"
  const cut = await client.chat.completions.create({ model, messages: ask("Count to 500"), max_completion_tokens: 9 })
  t.match(cut, { choices: [{ finish_reason: "length" }], usage: { completion_tokens: 9 } })
  const stopped = await client.chat.completions.create({ model, messages: ask("Count to 9"), stop: [" 4", "8"] })
  t.match(stopped.choices, [{ finish_reason: "stop", message: { content: "1, 2, 3," } }])
  const three = await client.chat.completions.create({ model, messages: ask("Say yes"), n: 3 })
  t.same(
    three.choices.map(choice => [choice.index, choice.message.content]),
    [
      [0, "yes"],
      [1, "yes"],
      [2, "yes"],
    ],
  )
})

t.test("reasoning is counted everywhere and shown by other hosts than OpenAI", async t => {
  const client = await open(t)
  const request = { messages: ask("Say yes"), reasoning_effort: "low" as const }
  const hidden = await client.chat.completions.create({ ...request, model: "gpt-5" })
  const shown = await client.chat.completions.create({ ...request, model: "deepseek-reasoner" })
  for (const answer of [hidden, shown]) {
    t.ok(answer.usage!.completion_tokens_details!.reasoning_tokens! > 0)
    t.ok(answer.usage!.completion_tokens > answer.usage!.completion_tokens_details!.reasoning_tokens!)
  }
  t.notMatch(hidden.choices[0]?.message, { reasoning_content: String })
  t.match(shown.choices[0]?.message, { reasoning_content: /yes/ })
})

t.test("a structured answer fits its schema", async t => {
  const client = await open(t)
  const answer = await client.chat.completions.create({
    model: "gpt-4.1",
    messages: ask("Where is Namsan?"),
    response_format: { type: "json_schema", json_schema: { name: "place", schema: weather, strict: true } },
  })
  t.same(JSON.parse(answer.choices[0]!.message.content!), { city: "Namsan", unit: "celsius", days: 2 })
})

t.test("what the vendor refuses is refused in its envelope", async t => {
  const client = await open(t)
  const create = (more: object) =>
    client.chat.completions.create({
      model: "gpt-4.1",
      messages: ask("hi"),
      ...more,
    } as OpenAI.ChatCompletionCreateParams)
  t.match(await refusalOf(create({ model: undefined })), { status: 400, param: "model" })
  t.match(await refusalOf(create({ model: "does-not-exist" })), { status: 404, code: "model_not_found" })
  t.match(await refusalOf(create({ messages: [] })), { status: 400, param: "messages" })
  t.match(await refusalOf(create({ stream_options: { include_usage: true } })), {
    status: 400,
    param: "stream_options",
  })
  t.match(await refusalOf(create({ thinking_budget: 1 })), { status: 400, code: "unknown_parameter" })
  t.match(await refusalOf(create({ model: "gpt-5", max_tokens: 9 })), { status: 400, code: "unsupported_parameter" })
  t.match(await refusalOf(create({ model: "gpt-5", temperature: 0 })), { status: 400, code: "unsupported_value" })
  t.match(await refusalOf(create({ model: "gpt-5.4", tools, reasoning_effort: "low" })), {
    status: 400,
    param: "reasoning_effort",
  })
  await t.resolves(create({ model: "gpt-5.4", tools, reasoning_effort: "none" }))
  t.match(await refusalOf(client.withOptions({ apiKey: "invalid-key" }).models.list()), { status: 404 })
})

t.test("a response is answered whole and as events that the SDK puts together", async t => {
  const client = await open(t)
  const whole = await client.responses.create({ model: "gpt-4.1", input: "Count to 20" })
  t.match(whole, { id: /^resp_/, status: "completed", output_text: /^1, 2, .* 20$/ })
  const events = await collect(await client.responses.create({ model: "gpt-4.1", input: "Count to 20", stream: true }))
  t.same(
    events.map(event => event.sequence_number),
    events.map((_, at) => at),
  )
  t.same(
    events.slice(0, 2).map(event => event.type),
    ["response.created", "response.in_progress"],
  )
  t.match(events.at(-1), { type: "response.completed", response: { usage: whole.usage } })
})

t.test("a response reasons, calls tools, and ends at its limit", async t => {
  const client = await open(t)
  const model = "gpt-5"
  const reasoned = await client.responses.create({
    model,
    input: "Say yes",
    reasoning: { effort: "low", summary: "auto" },
  })
  t.match(reasoned.output, [{ type: "reasoning", summary: [{ text: /yes/ }] }, { type: "message" }])
  t.ok(reasoned.usage!.output_tokens_details.reasoning_tokens > 0)
  const flat = [{ type: "function" as const, name: "weather", parameters: weather, strict: false }]
  const input = [{ role: "user" as const, content: "Is it raining in Busan?" }]
  const called = await client.responses.create({ model: "gpt-4.1", input, tools: flat })
  t.match(called.output, [{ type: "function_call", name: "weather", arguments: /Busan/ }])
  const call = called.output[0] as OpenAI.Responses.ResponseFunctionToolCall
  const told = [...input, call, { type: "function_call_output" as const, call_id: call.call_id, output: "no" }]
  t.match(await client.responses.create({ model: "gpt-4.1", input: told, tools: flat }), {
    output_text: /answered: no$/,
  })
  const cut = client.responses.stream({ model: "gpt-4.1", input: "Count to 500", max_output_tokens: 16 })
  const last = (await collect(cut)).at(-1)
  t.match(last, {
    type: "response.incomplete",
    response: {
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      usage: { output_tokens: 16 },
    },
  })
  t.match(await refusalOf(client.responses.create({ model, input: "hi", max_output_tokens: 1 })), { status: 400 })
})

t.test("embeddings have the wanted size and length 1, in both codings", async t => {
  const client = await open(t)
  const model = "text-embedding-3-small"
  const coded = await client.embeddings.create({ model, input: ["a", "b"], dimensions: 8 })
  const plain = await client.embeddings.create({ model, input: ["a", "b"], dimensions: 8, encoding_format: "float" })
  t.same(coded.data, plain.data)
  t.notSame(coded.data[0]?.embedding, coded.data[1]?.embedding)
  t.ok(Math.abs(Math.hypot(...plain.data[0]!.embedding) - 1) < 1e-6)
  t.same(coded.usage, { prompt_tokens: 2, total_tokens: 2 })
  t.equal((await client.embeddings.create({ model, input: [1, 2, 3] })).usage.prompt_tokens, 3)
  t.match(await refusalOf(client.embeddings.create({ model, input: "" })), { status: 400, param: "input" })
})

t.test("moderation gives one result for each text, one for parts together", async t => {
  const client = await open(t)
  const two = await client.moderations.create({ input: ["a flower", "I will kill them"] })
  t.match(two, {
    id: /^modr-/,
    results: [{ flagged: false }, { flagged: true, categories: { violence: true, sexual: false } }],
  })
  const parts = [
    { type: "text" as const, text: "a bomb" },
    { type: "image_url" as const, image_url: { url: "https://example.com/a.png" } },
  ]
  const one = await client.moderations.create({ input: parts })
  t.match(one.results, [
    { flagged: true, category_applied_input_types: { violence: ["text", "image"], hate: ["text"] } },
  ])
  t.equal(one.results.length, 1)
})
