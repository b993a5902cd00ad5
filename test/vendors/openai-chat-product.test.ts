/** Vendors of the OpenAI wire with wishes of their own, through the whole gateway: reasoning back, fields left out. */
import OpenAI from "openai"
import t, { type Test } from "tap"
import { testKey } from "../../core/testing.ts"
import { json, openProduct } from "../fixtures/product.ts"

const price = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }
const model = (more: object = {}) => ({
  type: "llm",
  targets: [{ vendor: "openai", model: "thinker-1" }],
  max_output: 1000,
  messages: true,
  price,
  ...more,
})
const catalog = { models: { thinker: model({ rules: { reasoning_back: true } }), plain: model() } }

const open = async (t: Test) => {
  const product = await openProduct(t, { catalog })
  return { product, client: new OpenAI({ apiKey: testKey, baseURL: product.url, maxRetries: 0 }) }
}

const question = { role: "user", content: "How is the weather in Seoul?" } as const
const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } } as const
const call = { id: "call_0_1", type: "function", function: { name: "weather", arguments: "{}" } } as const
/** What a client that knows no reasoning sends back. */
const history = [
  question,
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "tool", tool_call_id: call.id, content: "rain" },
] as const
const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 }
const answered = (message: object) => ({
  id: "a",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "tool_calls" }],
  usage,
})
const whole = answered({ content: "", reasoning_content: "I must look.", tool_calls: [call] })
const chunk = (delta: object, more: object = {}) => ({
  id: "a",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
})
const streamed = [
  chunk({ role: "assistant", content: null, reasoning_content: "I must" }),
  chunk({ reasoning_content: " look." }),
  chunk({ tool_calls: [{ index: 0, ...call }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: "" } }] }),
  chunk({}, { finish_reason: "tool_calls" }),
  { id: "a", choices: [], usage },
]

type Sent = { readonly messages: readonly { readonly reasoning_content?: string }[] }

for (const stream of [false, true]) {
  t.test(`bug 45: reasoning survives a client that drops it, ${stream ? "streamed" : "whole"}`, async t => {
    const { product, client } = await open(t)
    const sent = (at: number) => product.vendor.received[at]?.json() as Sent
    product.vendor.answer = (_, response) => {
      if (!stream) return json(response, 200, whole)
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end([...streamed.map(one => JSON.stringify(one)), "[DONE]"].map(one => `data: ${one}\n\n`).join(""))
    }
    const ask = async (model: string, messages: readonly object[]) => {
      const asked = { model, messages: messages as [], tools: [weather] }
      if (stream) await client.chat.completions.stream(asked).finalChatCompletion()
      else await client.chat.completions.create(asked)
    }
    await ask("thinker", [question])
    await ask("thinker", history)
    t.equal(sent(1).messages[1]?.reasoning_content, "I must look.")
    const own = { ...history[1], reasoning_content: "My own words." }
    await ask("thinker", [question, own, history[2]])
    t.equal(sent(2).messages[1]?.reasoning_content, "My own words.", "what the client sends is not touched")
    await ask("thinker", [question, { ...history[1], tool_calls: [{ ...call, id: "another" }] }, history[2]])
    t.equal(sent(3).messages[1]?.reasoning_content, undefined, "nothing is known of that call")
    await ask("plain", history)
    t.equal(sent(4).messages[1]?.reasoning_content, undefined, "a model that does not want it gets none")
  })
}

t.test("ids that come again bring each turn its own reasoning, and no other conversation's", async t => {
  const { product, client } = await open(t)
  const say = async (messages: readonly object[], reasoning: string) => {
    product.vendor.answer = (_, response) =>
      json(response, 200, answered({ content: "", reasoning_content: reasoning, tool_calls: [call] }))
    await client.chat.completions.create({ model: "thinker", messages: messages as [], tools: [weather] })
    const { messages: sent } = product.vendor.received.at(-1)!.json() as Sent
    return sent.flatMap(({ reasoning_content }) => reasoning_content ?? [])
  }
  const ours = [{ role: "user", content: "A" }]
  const theirs = [{ role: "user", content: "B" }]
  const turn = (result: string) => [history[1], { ...history[2], content: result }]
  t.same(await say(ours, "first of A"), [])
  t.same(await say(theirs, "first of B"), [])
  t.same(await say([...ours, ...turn("1")], "second of A"), ["first of A"])
  t.same(await say([...ours, ...turn("1"), ...turn("2")], "third of A"), ["first of A", "second of A"])
  t.same(await say([...theirs, ...turn("1")], "second of B"), ["first of B"])
})

t.test("a loop of a hundred turns gets all of it back; the other name of the field comes back as it was", async t => {
  const { product, client } = await open(t)
  const messages: object[] = [question]
  for (let turn = 0; turn <= 100; turn += 1) {
    const said = { content: "", reasoning: `thought ${turn}`, tool_calls: [{ ...call, id: `call_${turn}` }] }
    product.vendor.answer = (_, response) => json(response, 200, answered(said))
    await client.chat.completions.create({ model: "thinker", messages: messages as [], tools: [weather] })
    messages.push(
      { role: "assistant", content: null, tool_calls: [{ ...call, id: `call_${turn}` }] },
      { role: "tool", tool_call_id: `call_${turn}`, content: `rain ${turn}` },
    )
  }
  const { messages: sent } = product.vendor.received.at(-1)!.json() as { messages: readonly { reasoning?: string }[] }
  t.same(
    sent.flatMap(({ reasoning }) => reasoning ?? []),
    Array.from({ length: 100 }, (_, turn) => `thought ${turn}`),
  )
})

t.test("an answer without reasoning, without a tool or with a reasoning that is too long keeps nothing", async t => {
  const { product, client } = await open(t)
  const answers = [
    answered({ content: "", tool_calls: [call] }),
    answered({ content: "Rain.", reasoning_content: "I know." }),
    answered({ content: "", reasoning_content: "x".repeat(70_000), tool_calls: [call] }),
  ]
  for (const answer of answers) {
    product.vendor.answer = (_, response) => json(response, 200, answer)
    await client.chat.completions.create({ model: "thinker", messages: [question], tools: [weather] })
    await client.chat.completions.create({ model: "thinker", messages: history as never, tools: [weather] })
    const { messages } = product.vendor.received.at(-1)!.json() as Sent
    t.equal(messages[1]?.reasoning_content, undefined)
  }
})

/** As a host with a closed schema does it. */
const forbidden = (name: string) => ({
  object: "error",
  message: { detail: [{ type: "extra_forbidden", loc: ["body", name], msg: "Extra inputs are not permitted" }] },
  type: "invalid_request_error",
  code: null,
})

t.test("a host that refuses to be asked for usage is not asked, and its streams are billed all the same", async t => {
  const options = { leave_out: ["stream_options", "user"] }
  const product = await openProduct(t, { catalog })
  const vendors = {
    openai: { origin: product.vendor.origin, secrets: [{ env: "VENDOR_KEY", name: "first" }], options },
  }
  const strict = await openProduct(t, { catalog, gateway: { vendors } })
  product.vendor.answer = ({ json: sent }, response) => {
    const extra = ["stream_options", "user"].find(name => name in sent())
    if (extra !== undefined) return json(response, 422, forbidden(extra))
    response.writeHead(200, { "content-type": "text/event-stream" })
    const last = { ...chunk({ content: "Hello" }, { finish_reason: "stop" }), usage }
    response.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`)
  }
  const asked = { model: "plain", messages: [question], stream: true, max_tokens: 9 }
  const ask = async ({ url }: typeof strict, path: string, more: object) => {
    const headers = { authorization: `Bearer ${testKey}`, "content-type": "application/json" }
    const body = JSON.stringify({ ...asked, ...more })
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body })
    return [answer.status, (await answer.text()).includes("Hello")]
  }
  t.same(await ask(product, "/chat/completions/", {}), [400, false], "the vendor is as strict as it seems")
  const before = await strict.available()
  t.same(await ask(strict, "/chat/completions/", { user: "u", stream_options: { include_usage: true } }), [200, true])
  t.same(await ask(strict, "/anthropic/v1/messages/", { metadata: { user_id: "u" } }), [200, true])
  t.equal(before - (await strict.available()), 2 * (10 * 1_000 + 20 * 2_000))
})
