import Anthropic from "@anthropic-ai/sdk"
import t from "tap"
import { collect, refusalOf } from "../sandbox/helpers.ts"
import { anthropicOf, failingFirst, openGateway, poorKey, spentAtRest } from "./open.ts"

const model = "claude-sonnet-4-5"
const ask = (content: string) => [{ role: "user" as const, content }]
const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] }
const tools = [{ name: "weather", input_schema: schema }]
const request = (content: string) => ({ model, max_tokens: 400, messages: ask(content) })

const chargeOf = ({ input_tokens, output_tokens }: { input_tokens: number; output_tokens: number }): number =>
  1_000 * input_tokens + 2_000 * output_tokens

t.test("the client works with and without a slash after its base URL", async t => {
  const gateway = await openGateway(t)
  for (const slash of ["", "/"] as const) {
    const client = anthropicOf(gateway, { slash })
    const models = await collect(await client.models.list({ limit: 1 }))
    t.same(
      models.map(({ id }) => id),
      [model],
    )
    t.match(await client.messages.create(request("Say yes")), { content: [{ type: "text", text: "yes" }] })
  }
})

t.test("a whole answer and a stream say and cost the same", async t => {
  const gateway = await openGateway(t)
  const client = anthropicOf(gateway)
  const { data: whole, response } = await client.messages.create(request("Count to 40")).withResponse()
  t.equal(Number(response.headers.get("x-credits-charged")), chargeOf(whole.usage) / 1_000_000)
  const final = await client.messages.stream(request("Count to 40")).finalMessage()
  t.same(final.content, whole.content)
  t.equal(await spentAtRest(gateway), 2 * chargeOf(whole.usage))
})

t.test("a tool loop runs to its end", async t => {
  const client = anthropicOf(await openGateway(t))
  const asked = ask("How is the weather in Seoul?")
  const called = await client.messages.stream({ ...request(""), messages: asked, tools }).finalMessage()
  t.match(called, { stop_reason: "tool_use", content: [{ type: "tool_use", input: { city: "Seoul" } }] })
  const { id } = called.content[0] as Anthropic.ToolUseBlock
  const result = { type: "tool_result" as const, tool_use_id: id, content: "rain" }
  const told = await client.messages.create({
    ...request(""),
    tools,
    messages: [...asked, { role: "assistant", content: called.content }, { role: "user", content: [result] }],
  })
  t.match(told.content, [{ text: "The tool answered: rain" }])
})

t.test("a stream that its client aborts is charged by what the vendor generated", async t => {
  const gateway = await openGateway(t)
  const client = anthropicOf(gateway)
  const whole = chargeOf((await client.messages.create(request("Count to 60"))).usage)
  const stream = client.messages.stream(request("Count to 60"))
  stream.once("text", () => stream.abort())
  t.ok((await refusalOf(stream.finalMessage())) instanceof Anthropic.APIUserAbortError)
  t.equal(await spentAtRest(gateway, whole + 1), 2 * whole)
})

t.test("tokens are counted for nothing", async t => {
  const gateway = await openGateway(t)
  const client = anthropicOf(gateway)
  const { input_tokens } = await client.messages.countTokens({ model, messages: ask("Count these words") })
  const answer = await client.messages.create(request("Count these words"))
  t.equal(input_tokens, answer.usage.input_tokens)
  t.equal((await gateway.balance()).spent, chargeOf(answer.usage))
})

t.test("each refusal is the error class of its status, and costs nothing", async t => {
  const gateway = await openGateway(t, 2)
  const say = (client: Anthropic, name = model) => refusalOf(client.messages.create({ ...request("hi"), model: name }))
  const stranger = await say(anthropicOf(gateway, { key: "tg_nobody" }))
  t.ok(stranger instanceof Anthropic.AuthenticationError)
  t.match(stranger, { error: { type: "error", error: { type: "authentication_error", message: "Invalid API key" } } })
  t.match(await say(anthropicOf(gateway, { key: poorKey })), {
    status: 402,
    error: { error: { message: "Credit balance exhausted" } },
  })
  const client = anthropicOf(gateway)
  t.ok((await say(client, "no-such-model")) instanceof Anthropic.NotFoundError)
  const other = await say(client, "gpt-4.1")
  t.ok(other instanceof Anthropic.BadRequestError)
  t.match(other, { error: { error: { message: "Model 'gpt-4.1' is not an Anthropic model" } } })
  t.ok((await say(client)) instanceof Anthropic.RateLimitError)
  t.match(await gateway.balance(), { spent: 0, held: 0 })
})

t.test("what the client retries is answered, and charged once", async t => {
  const gateway = await openGateway(t)
  const { fetch, asked } = failingFirst(2, "500")
  const answer = await anthropicOf(gateway, { fetch, retries: 2 }).messages.create(request("Say yes"))
  t.match(answer.content, [{ text: "yes" }])
  t.equal(asked(), 3)
  t.match(await gateway.balance(), { spent: chargeOf(answer.usage), held: 0 })
})

t.test("a stream whose vendor dies is an error in the client", async t => {
  const gateway = await openGateway(t)
  const { fetch } = failingFirst(1, "die")
  const stream = anthropicOf(gateway, { fetch }).messages.stream(request("Count to 60"))
  t.ok((await refusalOf(stream.finalMessage())) instanceof Anthropic.AnthropicError)
  t.match(await gateway.balance(), { held: 0 })
})
