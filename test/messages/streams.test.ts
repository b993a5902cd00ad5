/** Streams of vendors that speak the hub's own wire, each with its habits, through the product. */
import t, { type Test } from "tap"
import { eventsOf } from "../fixtures/metering.ts"
import { chatAnswer, events, json, openProduct } from "../fixtures/product.ts"

interface Told {
  readonly type: string
  readonly delta?: Record<string, unknown>
  readonly usage?: Record<string, unknown>
  readonly [field: string]: unknown
}

const request = { model: "gpt-shared", max_tokens: 10, messages: [{ role: "user", content: "hi" }] }

/** What the client is told when the vendor writes these events. */
const streamOf = async (t: Test, ...lines: readonly string[]) => {
  const product = await openProduct(t)
  product.vendor.answer = (_, response) => events(response, ...lines)
  const answer = await product.call("/anthropic/v1/messages", { ...request, stream: true })
  const told = eventsOf(Buffer.from(await answer.text())).map(({ data }) => JSON.parse(data.toString()) as Told)
  return { told, end: told.find(({ type }) => type === "message_delta"), last: told.at(-1), product }
}

const chunk = (delta: object, more: object = {}) => JSON.stringify({ id: "c", choices: [{ index: 0, delta, ...more }] })
const usage = JSON.stringify({ id: "c", choices: [], usage: chatAnswer.usage })
const weather = { index: 0, id: "t1", function: { name: "weather", arguments: "{}" } }

for (const finish_reason of ["", null]) {
  t.test(`no reason to finish (${JSON.stringify(finish_reason)}): the end marker is the end`, async t => {
    const said = await streamOf(t, chunk({ content: "Hi" }, { finish_reason }), usage, "[DONE]")
    t.match(said.end, { delta: { stop_reason: "end_turn" }, usage: { input_tokens: 10, output_tokens: 20 } })
    t.equal(said.last?.type, "message_stop")
    const called = await streamOf(t, chunk({ tool_calls: [weather] }, { finish_reason }), " [DONE] ")
    t.match(called.end, { delta: { stop_reason: "tool_use" } })
    const cut = await streamOf(t, chunk({ content: "Hi" }, { finish_reason }), usage)
    t.match(cut.last, { type: "error" })
  })
}

t.test("a reason to finish is not changed by the end marker", async t => {
  const { end } = await streamOf(t, chunk({ content: "Hi" }), chunk({}, { finish_reason: "length" }), usage, "[DONE]")
  t.match(end, { delta: { stop_reason: "max_tokens" } })
})

t.test("an event without data is nothing", async t => {
  const { end, last } = await streamOf(t, "", chunk({ content: "Hi" }), " ", chunk({}, { finish_reason: "stop" }), "")
  t.match(end, { delta: { stop_reason: "end_turn" } })
  t.equal(last?.type, "message_stop")
})

t.test("an error that a vendor wraps ends the answer as one, and is charged by nothing but reported usage", async t => {
  const failed = JSON.stringify({ id: "c", choices: [], x_groq: { id: "r", error: "over capacity" } })
  const midway = await streamOf(t, chunk({ content: "Hi" }), failed, "[DONE]")
  t.match(midway.last, { type: "error" })
  t.match(await midway.product.balance(), { spent: 0, held: 0 })
})

t.test("refused prompts do not make a vendor look broken to everyone else", async t => {
  const product = await openProduct(t)
  const error = { message: "Input data may contain inappropriate content.", code: "data_inspection_failed" }
  product.vendor.answer = (_, response) => events(response, JSON.stringify({ error }))
  for (let call = 0; call < 12; call += 1) {
    const answer = await product.call("/chat/completions", { ...request, stream: true })
    t.equal(answer.status, 400)
    t.match(await answer.json(), { error: { type: "content_policy_violation", message: error.message } })
  }
  t.equal(product.vendor.received.length, 12, "each was asked once")
})

const tokensOf = (told: Told | undefined) => told?.usage as { input_tokens: number; output_tokens: number }

t.test("a vendor that tells no usage: the client is told what the call is charged as", async t => {
  const content = "twenty-one bytes long"
  const { end, product } = await streamOf(t, chunk({ content }), chunk({}, { finish_reason: "stop" }), "[DONE]")
  const { input_tokens, output_tokens } = tokensOf(end)
  t.equal(output_tokens, 6)
  t.match(await product.balance(), { spent: input_tokens * 1_000 + 6 * 2_000, held: 0 })
  for (const usage of [undefined, null, { prompt_tokens: 0, completion_tokens: 0 }]) {
    const choices = [{ index: 0, message: { content }, finish_reason: "stop" }]
    product.vendor.answer = (_, response) => json(response, 200, { choices, usage })
    const answer = await (await product.call("/anthropic/v1/messages", request)).json()
    t.same((answer as Told).usage?.output_tokens, 6)
    t.same((answer as Told).usage?.input_tokens, input_tokens)
  }
})

t.test("a stream of nothing tells the input that it is charged for", async t => {
  const { end, product } = await streamOf(t, chunk({}, { finish_reason: "stop" }), "[DONE]")
  const { input_tokens, output_tokens } = tokensOf(end)
  t.equal(output_tokens, 0)
  t.match(await product.balance(), { spent: input_tokens * 1_000, held: 0 })
})
