import { ApiError, type GoogleGenAI } from "@google/genai"
import t from "tap"
import { events, json, openProduct } from "../fixtures/product.ts"
import { collect, refusalOf } from "../sandbox/helpers.ts"
import { googleOf, openGateway, poorKey, spentAtRest } from "./open.ts"

const model = "gemini-2.5-flash"
const schema = { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] }
const config = { tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: schema }] }] }

type Usage = { promptTokenCount?: number; candidatesTokenCount?: number; thoughtsTokenCount?: number } | undefined

const chargeOf = (usage: Usage): number =>
  1_000 * (usage?.promptTokenCount ?? 0) +
  2_000 * ((usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0))

t.test("the client works with and without a slash after its base URL", async t => {
  const gateway = await openGateway(t)
  for (const slash of ["", "/"] as const) {
    const { models } = googleOf(gateway, { slash })
    t.same(
      (await collect(await models.list())).map(({ name }) => name),
      [`models/${model}`],
    )
    t.equal((await models.generateContent({ model, contents: "Say yes" })).text, "yes")
  }
})

t.test("a whole answer and a stream say and cost the same", async t => {
  const gateway = await openGateway(t)
  const { models } = googleOf(gateway)
  const whole = await models.generateContent({ model, contents: "Count to 30" })
  t.equal(await spentAtRest(gateway), chargeOf(whole.usageMetadata))
  const chunks = await collect(await models.generateContentStream({ model, contents: "Count to 30" }))
  t.equal(chunks.map(chunk => chunk.text ?? "").join(""), whole.text)
  t.equal(await spentAtRest(gateway, chargeOf(whole.usageMetadata) + 1), 2 * chargeOf(whole.usageMetadata))
})

t.test("a chat with a tool runs to its end", async t => {
  const chat = googleOf(await openGateway(t)).chats.create({ model, config })
  const called = await chat.sendMessage({ message: "How is the weather in Seoul?" })
  t.match(called.functionCalls, [{ name: "weather", args: { city: "Seoul" } }])
  const result = { functionResponse: { name: "weather", response: { sky: "rain" } } }
  const chunks = await collect(await chat.sendMessageStream({ message: [result] }))
  t.equal(chunks.map(chunk => chunk.text ?? "").join(""), 'The tool answered: {"sky":"rain"}')
})

t.test("a stream that its client aborts is charged by what the vendor generated", async t => {
  const gateway = await openGateway(t)
  const { models } = googleOf(gateway)
  const contents = "Count to 60"
  const whole = chargeOf((await models.generateContent({ model, contents })).usageMetadata)
  const stop = new AbortController()
  const stream = await models.generateContentStream({ model, contents, config: { abortSignal: stop.signal } })
  await stream.next()
  stop.abort()
  t.equal(await spentAtRest(gateway, whole + 1), 2 * whole)
})

t.test("tokens are counted for nothing", async t => {
  const gateway = await openGateway(t)
  const { models } = googleOf(gateway)
  const { totalTokens } = await models.countTokens({ model, contents: "Count these words" })
  const answer = await models.generateContent({ model, contents: "Count these words" })
  t.equal(totalTokens, answer.usageMetadata?.promptTokenCount)
  t.equal(await spentAtRest(gateway), chargeOf(answer.usageMetadata))
})

t.test("each refusal is an error of its status in the vendor's shape, and costs nothing", async t => {
  const gateway = await openGateway(t, 2)
  const say = async ({ models }: GoogleGenAI, name = model): Promise<ApiError> =>
    (await refusalOf(models.generateContent({ model: name, contents: "hi" }))) as ApiError
  const stranger = await say(googleOf(gateway, { key: "tg_nobody" }))
  t.ok(stranger instanceof ApiError)
  t.equal(stranger.status, 401)
  t.match(stranger.message, /"status":"UNAUTHENTICATED"/)
  t.match(await say(googleOf(gateway, { key: poorKey })), { status: 402, message: /Credit balance exhausted/ })
  const client = googleOf(gateway)
  t.match(await say(client, "no-such-model"), { status: 404, message: /Model 'no-such-model' not found/ })
  t.match(await say(client, "gpt-4.1"), { status: 400, message: /Model 'gpt-4.1' is not a Google model/ })
  t.match(await say(client), { status: 429, message: /Rate limit exceeded/ })
  t.match(await gateway.balance(), { spent: 0, held: 0 })
})

const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 20, totalTokenCount: 30 }
const candidates = [{ index: 0, finishReason: "STOP", content: { role: "model", parts: [{ text: "yes" }] } }]

t.test("what the client retries is answered, and charged once", async t => {
  const product = await openProduct(t)
  let asked = 0
  product.vendor.answer = (_, response) => {
    asked += 1
    // Two tries of the gateway fail, then the client's own second try gets through.
    if (asked <= 2) json(response, 503, { error: { code: 503, message: "overloaded", status: "UNAVAILABLE" } })
    else json(response, 200, { candidates, usageMetadata })
  }
  const { models } = googleOf(product, { retries: 2 })
  t.equal((await models.generateContent({ model: "gemini", contents: "Say yes" })).text, "yes")
  t.equal(asked, 3)
  t.match(await product.balance(), { spent: 50_000, held: 0 })
})

t.test("the client's key goes to the gateway, never to the vendor", async t => {
  const product = await openProduct(t)
  product.vendor.answer = (_, response) => events(response, JSON.stringify({ candidates, usageMetadata }))
  const chunks = await collect(
    await googleOf(product).models.generateContentStream({ model: "gemini", contents: "Say yes" }),
  )
  t.equal(chunks[0]?.text, "yes")
  const [sent] = product.vendor.received
  t.match(sent, { path: "/v1/models/vendor-model:streamGenerateContent?alt=sse" })
  t.equal(sent?.headers["x-goog-api-key"], "secret-of-the-vendor")
})
