/** The official OpenAI client in front of a model of the Messages wire, through the whole gateway. */
import OpenAI from "openai"
import t, { type Test } from "tap"
import { testGateway, testKey } from "../../core/testing.ts"
import { json, openProduct } from "../fixtures/product.ts"

const claude = {
  type: "llm",
  family: "anthropic",
  targets: [{ vendor: "anthropic", model: "vendor-model" }],
  max_output: 4000,
  capabilities: ["tools", "reasoning", "vision"],
  rules: { efforts: ["low", "medium", "high"], effort_budgets: { low: 1024, medium: 8192, high: 24576 } },
  price: { input: "1000 per 1M tokens", output: "2000 per 1M tokens" },
}
const catalog = { models: { claude } }

const clientOf = (url: string): OpenAI => new OpenAI({ apiKey: testKey, baseURL: url, maxRetries: 0 })
const open = async (t: Test) => {
  const product = await openProduct(t, { catalog })
  return { product, client: clientOf(product.url) }
}

/** What the client throws. */
const refusal = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => "no refusal",
    (error: unknown) => error,
  )

const look = {
  type: "function",
  function: { name: "weather.now", parameters: { type: "object", properties: { city: { type: "string" } } } },
} as const
const question = { role: "user", content: "How is the weather in Seoul?" } as const
const usage = { input_tokens: 10, output_tokens: 20 }
const messageOf = (content: readonly object[], stop_reason = "end_turn") => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "vendor-model",
  content,
  stop_reason,
  usage,
})
const streamOf = (...events: readonly { readonly type: string; readonly [field: string]: unknown }[]): string =>
  events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")
const start = { type: "message_start", message: { ...messageOf([]), stop_reason: null } }

t.test("a tool loop runs against the simulated vendor, whole and streamed", async t => {
  const vendors = { anthropic: { adapter: "anthropic", origin: "https://sandbox.invalid", secrets: [] } }
  const gateway = await testGateway({ catalog, gateway: { vendors } })
  t.teardown(() => gateway.close())
  const client = clientOf(gateway.url)
  const asked = await client.chat.completions.create({ model: "claude", messages: [question], tools: [look] })
  const [{ message, finish_reason } = t.fail() as never] = asked.choices
  t.equal(finish_reason, "tool_calls")
  const [call] = message.tool_calls ?? []
  t.match(call, { type: "function", function: { name: "weather.now", arguments: '{"city":"Seoul"}' } })
  const result = { role: "tool", tool_call_id: call?.id ?? "", content: '{"sky":"rain"}' } as const
  const messages = [question, message, result]
  const told = await client.chat.completions.create({ model: "claude", messages, tools: [look] })
  t.match(told.choices[0], { finish_reason: "stop", message: { content: /rain/ } })
  const stream_options = { include_usage: true }
  const stream = client.chat.completions.stream({ model: "claude", messages, tools: [look], stream_options })
  t.equal((await stream.finalChatCompletion()).choices[0]?.message.content, told.choices[0]?.message.content)
  t.same(await stream.totalUsage(), told.usage)
})

t.test("signed thinking survives a client that drops it", async t => {
  const { product, client } = await open(t)
  const thinking = { type: "thinking", thinking: "Let me look.", signature: "ab+/cd==" }
  const block = { type: "tool_use", id: "toolu_1", name: "weather_now", input: {} }
  const call = { id: "toolu_1", type: "function", function: { name: "weather.now", arguments: "{}" } } as const
  const asking = { model: "claude", tools: [look], reasoning_effort: "low" as const }
  product.vendor.answer = (_, response) => json(response, 200, messageOf([thinking, block], "tool_use"))
  const asked = await client.chat.completions.create({ ...asking, messages: [question] })
  t.match(asked.choices[0]?.message, { tool_calls: [call], reasoning_content: "Let me look." })
  const result = { role: "tool", tool_call_id: "toolu_1", content: "rain" } as const
  await client.chat.completions.create({
    ...asking,
    messages: [question, { role: "assistant", tool_calls: [call] }, result],
  })
  t.match(product.vendor.received[1]?.json(), {
    thinking: { type: "enabled", budget_tokens: 1024 },
    messages: [{}, { role: "assistant", content: [thinking, block] }, { content: [{ tool_use_id: "toolu_1" }] }],
  })
})

t.test("the version is the adapter's, whatever a client sends", async t => {
  const { product } = await open(t)
  product.vendor.answer = (_, response) => json(response, 200, messageOf([{ type: "text", text: "Hi" }]))
  const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "context-1m-2025-08-07" }
  await clientOf(product.url).chat.completions.create({ model: "claude", messages: [question] }, { headers })
  const [{ path, headers: sent } = t.fail() as never] = product.vendor.received
  t.same([path, sent["anthropic-version"], sent["anthropic-beta"]], ["/v1/messages", "2023-06-01", undefined])
  t.equal(sent["x-api-key"], "secret-of-the-vendor")
})

t.test("a whole answer is billed by the vendor's counts and shows them", async t => {
  const { product, client } = await open(t)
  product.vendor.answer = (_, response) => json(response, 200, messageOf([{ type: "text", text: "Hi" }]))
  const answer = await client.chat.completions.create({ model: "claude", messages: [question] })
  t.match(answer, { model: "claude", usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 } })
  t.match(await product.balance(), { spent: 10 * 1_000 + 20 * 2_000, held: 0 })
})

t.test("a refusal that is known before the call reaches no vendor and costs nothing", async t => {
  const { product, client } = await open(t)
  const biased = client.chat.completions.create({ model: "claude", messages: [question], logit_bias: { 5: 1 } })
  t.match(await refusal(biased), { status: 400, param: "logit_bias" })
  const content = [{ type: "image_url" as const, image_url: { url: "http://a.example/x.png" } }]
  const looking = client.chat.completions.create({ model: "claude", messages: [{ role: "user", content }] })
  t.match(await refusal(looking), { status: 400, param: "messages[0].content[0].image_url.url" })
  t.same(product.vendor.received, [])
  t.match(await product.balance(), { spent: 0, held: 0 })
})

t.test("a stream that the vendor cuts ends with an error, not with a reason", async t => {
  const { product, client } = await open(t)
  const text = { type: "content_block_start", index: 0, content_block: { type: "text", text: "Hel" } }
  const more = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "lo" } }
  product.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(streamOf(start, text, more))
  }
  const stream = await client.chat.completions.create({ model: "claude", messages: [question], stream: true })
  const said: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const { choices } of stream) said.push(choices[0]?.delta.content, choices[0]?.finish_reason)
  }
  await t.rejects(read())
  t.same(said, ["", null, "Hel", null, "lo", null])
})

t.test("an error that comes before any content is an ordinary error", async t => {
  const { product, client } = await open(t)
  const failure = { type: "error", error: { type: "invalid_request_error", message: "prompt is too long" } }
  product.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(streamOf(start, failure))
  }
  const streamed = client.chat.completions.create({ model: "claude", messages: [question], stream: true })
  t.match(await refusal(streamed), { status: 400, message: /prompt is too long/ })
  product.vendor.answer = (_, response) => json(response, 400, failure)
  const whole = client.chat.completions.create({ model: "claude", messages: [question] })
  t.match(await refusal(whole), { status: 400, message: /prompt is too long/ })
  t.match(await product.balance(), { spent: 0, held: 0 })
})
