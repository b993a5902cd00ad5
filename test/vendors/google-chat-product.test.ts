/** The official OpenAI client in front of a model of the generate-content wire, through the whole gateway. */
import OpenAI from "openai"
import t, { type Test } from "tap"
import { testGateway, testKey } from "../../core/testing.ts"
import { candidate, levels, streamOf } from "../fixtures/google-chat.ts"
import { json, openProduct } from "../fixtures/product.ts"

const price = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }
const capabilities = ["tools", "structured_output", "reasoning", "vision"]
const gemini = {
  type: "llm",
  family: "google",
  targets: [{ vendor: "google", model: "gemini-2.5-flash" }],
  max_output: 1000,
  capabilities,
  rules: levels,
  price,
}
const catalog = { models: { gemini } }

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

const weather = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
} as const
const question = { role: "user", content: "How is the weather in Seoul?" } as const
const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 15, totalTokenCount: 30 }

t.test("a tool loop runs against the simulated vendor, whole and streamed", async t => {
  const vendors = { google: { adapter: "google", origin: "https://sandbox.invalid", secrets: [] } }
  const gateway = await testGateway({ catalog, gateway: { vendors } })
  t.teardown(() => gateway.close())
  const client = clientOf(gateway.url)
  const asked = await client.chat.completions.create({ model: "gemini", messages: [question], tools: [weather] })
  const [{ message, finish_reason } = t.fail() as never] = asked.choices
  t.equal(finish_reason, "tool_calls")
  const [call] = message.tool_calls ?? []
  t.match(call, { type: "function", function: { name: "weather", arguments: '{"city":"Seoul"}' } })
  const result = { role: "tool", tool_call_id: call?.id ?? "", content: '{"sky":"rain"}' } as const
  const messages = [question, message, result]
  const told = await client.chat.completions.create({ model: "gemini", messages, tools: [weather] })
  t.match(told.choices[0], { finish_reason: "stop", message: { content: /rain/ } })
  const stream = client.chat.completions.stream({
    model: "gemini",
    messages,
    tools: [weather],
    stream_options: { include_usage: true },
  })
  t.equal((await stream.finalChatCompletion()).choices[0]?.message.content, told.choices[0]?.message.content)
  t.same(await stream.totalUsage(), told.usage)
})

t.test("bug 12: a signature survives a client that drops it", async t => {
  const { product, client } = await open(t)
  const parts = [{ functionCall: { name: "weather", args: {}, id: "call-1" }, thoughtSignature: "ab+/cd==" }]
  product.vendor.answer = (_, response) => json(response, 200, candidate(parts, "STOP", { usageMetadata }))
  const asked = await client.chat.completions.create({ model: "gemini", messages: [question], tools: [weather] })
  t.equal(asked.choices[0]?.message.tool_calls?.[0]?.id, "call-1")
  const call = { id: "call-1", type: "function", function: { name: "weather", arguments: "{}" } } as const
  await client.chat.completions.create({
    model: "gemini",
    messages: [
      question,
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "call-1", content: "rain" },
    ],
    tools: [weather],
  })
  t.match(product.vendor.received[1]?.json(), {
    contents: [{}, { parts: [{ functionCall: { id: "call-1" }, thoughtSignature: "ab+/cd==" }] }, {}],
  })
})

t.test("a whole answer is billed by the vendor's counts and shows them", async t => {
  const { product, client } = await open(t)
  product.vendor.answer = (_, response) => json(response, 200, candidate([{ text: "Hi" }], "STOP", { usageMetadata }))
  const answer = await client.chat.completions.create({ model: "gemini", messages: [question] })
  t.match(answer, { model: "gemini", usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 } })
  t.match(await product.balance(), { spent: 10 * 1_000 + 20 * 2_000, held: 0 })
  t.equal(product.vendor.received[0]?.headers["x-goog-api-key"], "secret-of-the-vendor")
})

t.test(
  "an effort that the model does not offer becomes the nearest one here, and is refused where words pass on",
  async t => {
    const plain = { ...gemini, family: "openai", targets: [{ vendor: "openai", model: "plain" }] }
    const mixed = { ...gemini, targets: [...gemini.targets, ...plain.targets] }
    const { vendor, call, balance } = await openProduct(t, { catalog: { models: { gemini, plain, mixed } } })
    vendor.answer = (_, response) => json(response, 200, candidate([{ text: "Hi" }], "STOP", { usageMetadata }))
    const ask = (model: string, reasoning_effort: string) =>
      call("/chat/completions/", { model, messages: [question], reasoning_effort })
    for (const [effort, thinkingLevel] of [
      ["none", "MINIMAL"],
      ["xhigh", "HIGH"],
    ] as const) {
      t.equal((await ask("gemini", effort)).status, 200)
      t.match(vendor.received.at(-1)?.json(), { generationConfig: { thinkingConfig: { thinkingLevel } } })
    }
    for (const model of ["plain", "mixed"]) {
      const refused = await ask(model, "xhigh")
      t.match([refused.status, await refused.json()], [400, { error: { param: "reasoning_effort" } }], model)
    }
    t.equal((await ask("gemini", "much")).status, 400, "a word that nobody knows")
    t.equal(vendor.received.length, 2)
    t.match(await balance(), { held: 0 })
  },
)

t.test("a refusal that is known before the call reaches no vendor and costs nothing", async t => {
  const { product, client } = await open(t)
  const biased = client.chat.completions.create({ model: "gemini", messages: [question], logit_bias: { 5: 1 } })
  t.match(await refusal(biased), { status: 400, param: "logit_bias" })
  const content = [{ type: "image_url" as const, image_url: { url: "https://a.example/x.png" } }]
  const looking = client.chat.completions.create({ model: "gemini", messages: [{ role: "user", content }] })
  t.match(await refusal(looking), { status: 400, param: "messages[0].content[0].image_url" })
  t.same(product.vendor.received, [])
  t.match(await product.balance(), { spent: 0, held: 0 })
})

t.test("a stream that the vendor cuts ends with an error, not with a reason", async t => {
  const { product, client } = await open(t)
  product.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(streamOf(candidate([{ text: "Hel" }])))
  }
  const stream = await client.chat.completions.create({ model: "gemini", messages: [question], stream: true })
  const said: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const { choices } of stream) said.push(choices[0]?.delta.content, choices[0]?.finish_reason)
  }
  await t.rejects(read())
  t.same(said, ["", null, "Hel", null])
})

t.test("an error that comes as the first event is an ordinary error, in either shape", async t => {
  const { product, client } = await open(t)
  const error = { code: 400, message: "Bad thing", status: "INVALID_ARGUMENT" }
  for (const body of [{ error }, [{ error }]]) {
    product.vendor.answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end(streamOf(body))
    }
    const streamed = client.chat.completions.create({ model: "gemini", messages: [question], stream: true })
    t.match(await refusal(streamed), { status: 400, message: /Bad thing/ }, JSON.stringify(body))
    product.vendor.answer = (_, response) => json(response, 400, body)
    const whole = client.chat.completions.create({ model: "gemini", messages: [question] })
    t.match(await refusal(whole), { status: 400, message: /Bad thing/ })
  }
  t.match(await product.balance(), { spent: 0, held: 0 })
})
