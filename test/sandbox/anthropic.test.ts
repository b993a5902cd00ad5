import Anthropic from "@anthropic-ai/sdk"
import t, { type Test } from "tap"
import { inputTokens } from "../../plugins/sandbox/tokens.ts"
import { openSandboxed } from "../fixtures/endpoints.ts"
import { collect, openSandbox, refusalOf } from "./helpers.ts"

const open = async (t: Test): Promise<Anthropic> => {
  const { origin } = await openSandbox(t)
  return new Anthropic({ apiKey: "sandbox", baseURL: origin, maxRetries: 0 })
}

const model = "claude-sonnet-4-5"
const ask = (content: string) => [{ role: "user" as const, content }]
const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] }
const tools = [{ name: "weather", input_schema: schema }]

t.test("a message is answered whole and as events that say the same", async t => {
  const client = await open(t)
  const request = { model, max_tokens: 400, messages: ask("Count to 40") }
  const whole = await client.messages.create(request)
  t.match(whole, { id: /^msg_/, stop_reason: "end_turn", content: [{ type: "text", text: /^1, 2, .*, 40$/ }] })
  t.match(whole.usage, { input_tokens: inputTokens([request.messages]), cache_read_input_tokens: 0 })
  const stream = client.messages.stream(request)
  const final = await stream.finalMessage()
  t.same(final.content, whole.content)
  t.equal(final.usage.output_tokens, whole.usage.output_tokens)
})

t.test("the events come in the vendor's order, each with its name", async t => {
  const { origin } = await openSandbox(t)
  const answer = await fetch(`${origin}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": "sandbox", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model, max_tokens: 9, stream: true, messages: ask("Say yes") }),
  })
  t.match(answer.headers.get("request-id"), /^req_/)
  const events = (await answer.text()).split("\n\n").filter(event => event !== "")
  const names = events.map(event => /^event: (\S+)\ndata: /.exec(event)?.[1])
  const types = events.map(event => JSON.parse(event.slice(event.indexOf("data: ") + 6)).type)
  t.same(names, types)
  t.same(names, [
    "message_start",
    "content_block_start",
    "ping",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ])
})

t.test("a tool is called, its result is told, and a tool without arguments has an empty input", async t => {
  const client = await open(t)
  const messages = ask("How is the weather in Seoul?")
  const called = await client.messages.create({ model, max_tokens: 400, messages, tools })
  t.match(called, {
    stop_reason: "tool_use",
    content: [{ type: "tool_use", name: "weather", input: { city: "Seoul" } }],
  })
  const streamed = await client.messages.stream({ model, max_tokens: 400, messages, tools }).finalMessage()
  t.match(streamed.content, [{ type: "tool_use", input: { city: "Seoul" } }])
  const call = called.content[0] as Anthropic.ToolUseBlock
  const result = { type: "tool_result" as const, tool_use_id: call.id, content: "rain" }
  const told = await client.messages.create({
    model,
    max_tokens: 400,
    tools,
    messages: [...messages, { role: "assistant", content: called.content }, { role: "user", content: [result] }],
  })
  t.match(told, { stop_reason: "end_turn", content: [{ text: "The tool answered: rain" }] })
  const empty = [{ name: "now", input_schema: { type: "object" as const, properties: {} } }]
  const bare = await client.messages.stream({ model, max_tokens: 400, messages, tools: empty }).finalMessage()
  t.match(bare.content, [{ type: "tool_use", name: "now", input: {} }])
})

t.test("a message thinks when asked, and its thoughts count as output", async t => {
  const client = await open(t)
  const thinking = { type: "enabled" as const, budget_tokens: 1024 }
  const request = { model, max_tokens: 2000, messages: ask("Say yes"), thinking }
  const whole = await client.messages.create(request)
  t.match(whole.content, [
    { type: "thinking", thinking: /yes/, signature: String },
    { type: "text", text: "yes" },
  ])
  const streamed = await client.messages.stream(request).finalMessage()
  t.match(streamed.content, [
    { type: "thinking", thinking: (whole.content[0] as Anthropic.ThinkingBlock).thinking },
    {},
  ])
  t.ok(streamed.usage.output_tokens > 10)
})

t.test("a message ends at its limit and at a stop sequence", async t => {
  const client = await open(t)
  const cut = await client.messages.create({ model, max_tokens: 5, messages: ask("Count to 99") })
  t.match(cut, { stop_reason: "max_tokens", stop_sequence: null, usage: { output_tokens: 5 } })
  const stopped = await client.messages.create({
    model,
    max_tokens: 99,
    messages: ask("Count to 9"),
    stop_sequences: ["4"],
  })
  t.match(stopped, { stop_reason: "stop_sequence", stop_sequence: "4", content: [{ text: "1, 2, 3, " }] })
})

t.test("a marked prefix is written to the cache once and read from then on", async t => {
  const client = await open(t)
  const request = (ttl: "5m" | "1h", text: string) => ({
    model,
    max_tokens: 9,
    system: [{ type: "text" as const, text, cache_control: { type: "ephemeral" as const, ttl } }],
    messages: ask("Say yes"),
  })
  const first = (await client.messages.create(request("5m", "Be kind and brief."))).usage
  const second = (await client.messages.create(request("5m", "Be kind and brief."))).usage
  t.ok(first.cache_creation_input_tokens! > 0)
  t.equal(first.cache_read_input_tokens, 0)
  t.equal(second.cache_creation_input_tokens, 0)
  t.equal(second.cache_read_input_tokens, first.cache_creation_input_tokens)
  t.equal(second.input_tokens, first.input_tokens)
  const hour = (await client.messages.create(request("1h", "Be kind, brief and slow."))).usage
  t.equal(hour.cache_creation?.ephemeral_1h_input_tokens, hour.cache_creation_input_tokens)
})

t.test("the speed that was asked for is told back, and charged as its tier", async t => {
  const target = { vendor: "anthropic", model }
  const price = {
    input: "0 per 1M tokens",
    output: "1000 per 1M tokens",
    when: [{ if: { service_tier: "fast" }, times: 6 }],
  }
  const gateway = await openSandboxed(
    t,
    { claude: { type: "llm", family: "anthropic", targets: [target], price } },
    { anthropic: { origin: "https://anthropic.invalid", secrets: [] } },
  )
  const spent: number[] = []
  for (const more of [{}, { speed: "standard" }, { speed: "fast" }, { speed: "fast", stream: true }]) {
    const request = { model: "claude", max_tokens: 100, messages: ask("Say yes"), ...more }
    const answer = await gateway.call("/vendor-a/v1/messages", request)
    t.equal(answer.status, 200)
    const speed = /"speed":"(\w+)"/.exec(await answer.text())?.[1]
    t.equal(speed, "speed" in more ? more.speed : undefined)
    spent.push((await gateway.balance()).spent)
  }
  const [plain = 0] = spent
  t.ok(plain > 0)
  t.same(spent, [plain, 2 * plain, 8 * plain, 14 * plain])
})

t.test("tokens are counted without an answer", async t => {
  const client = await open(t)
  const messages = ask("Count these words")
  t.same(await client.messages.countTokens({ model, messages }), { input_tokens: inputTokens([messages]) })
})

t.test("what the vendor refuses is refused in its envelope", async t => {
  const { origin } = await openSandbox(t)
  const good = { model, max_tokens: 9, messages: ask("hi") }
  const post = async (body: unknown, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${origin}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": "sandbox", "anthropic-version": "2023-06-01", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    })
    return { status: answer.status, ...((await answer.json()) as object) }
  }
  const refused = (status: number, type: string) => ({ status, type: "error", error: { type }, request_id: /^req_/ })
  t.match(await post(good, { "x-api-key": "invalid" }), refused(401, "authentication_error"))
  t.match(await post(good, { "anthropic-version": "2026-10-21" }), { type: "message" })
  t.match(
    await post({ ...good, temperature: 1 }, { "anthropic-version": "2026-10-21" }),
    refused(400, "invalid_request_error"),
  )
  t.match(await post({ ...good, model: "does-not-exist" }), refused(404, "not_found_error"))
  t.match(await post({ ...good, max_tokens: undefined }), refused(400, "invalid_request_error"))
  t.match(
    await post({ ...good, thinking: { type: "enabled", budget_tokens: 5 } }),
    refused(400, "invalid_request_error"),
  )
  for (const budget_tokens of [{ toString: 1 }, "2000", 2000.5, null, undefined, [2000], true]) {
    t.match(
      await post({ ...good, max_tokens: 4000, thinking: { type: "enabled", budget_tokens } }),
      refused(400, "invalid_request_error"),
      JSON.stringify(budget_tokens),
    )
  }
  for (const speed of ["faster", { toString: 1 }, 1]) {
    t.match(await post({ ...good, speed }), refused(400, "invalid_request_error"), JSON.stringify(speed))
  }
  t.match(await post("{"), refused(400, "invalid_request_error"))
  t.match(await post("[]"), refused(400, "invalid_request_error"))
  const client = new Anthropic({ apiKey: "sandbox", baseURL: origin, maxRetries: 0 })
  t.match(await refusalOf(client.messages.create({ ...good, messages: [] })), { status: 400 })
  t.ok((await collect(await client.messages.create({ ...good, stream: true }))).length > 5)
})
