/** Conversations with tools over several turns: each client on models of each wire, whole and streamed. */
import type Anthropic from "@anthropic-ai/sdk"
import type OpenAI from "openai"
import t, { type Test } from "tap"
import { testGateway } from "../../core/testing.ts"
import { anthropicOf, openaiOf } from "./open.ts"

const wires = ["openai", "anthropic", "google"] as const
const cities = ["Seoul", "Busan", "Jeju"]

const open = async (t: Test) => {
  const price = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }
  const model = (vendor: string) => ({
    type: "llm",
    family: vendor,
    targets: [{ vendor, model: `${vendor}-model` }],
    max_output: 4096,
    capabilities: ["tools"],
    messages: true,
    price,
  })
  const vendor = (adapter: string) => ({ adapter, origin: "https://sandbox.invalid" })
  const gateway = await testGateway({
    catalog: { models: Object.fromEntries(wires.map(name => [name, model(name)])) },
    gateway: { vendors: Object.fromEntries(wires.map(name => [name, vendor(name)])) },
  })
  t.teardown(() => gateway.close())
  return gateway
}

const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] }
const question = (city: string) => ({ role: "user" as const, content: `How is the weather in ${city}?` })

for (const model of wires) {
  for (const stream of [false, true]) {
    const how = stream ? "streamed" : "whole"

    t.test(`chat, ${model}, ${how}: three questions, each answered by a tool`, async t => {
      const gateway = await open(t)
      const client = openaiOf(gateway)
      const tools = [{ type: "function" as const, function: { name: "weather", parameters: schema } }]
      const messages: OpenAI.ChatCompletionMessageParam[] = []
      const say = async (): Promise<OpenAI.ChatCompletionMessage> => {
        const request = { model, messages, tools }
        const { choices } = stream
          ? await client.chat.completions.stream(request).finalChatCompletion()
          : await client.chat.completions.create(request)
        const { content, tool_calls, role } = choices[0]!.message
        messages.push({ role, content, ...(tool_calls === undefined ? {} : { tool_calls }) })
        return choices[0]!.message
      }
      for (const city of cities) {
        messages.push(question(city))
        const { tool_calls: [call] = [] } = await say()
        t.match(call, { function: { name: "weather", arguments: JSON.stringify({ city }) } })
        messages.push({ role: "tool", tool_call_id: call!.id, content: `rain in ${city}` })
        t.match((await say()).content, `rain in ${city}`)
      }
      t.match(await gateway.balance(), { held: 0 })
    })

    t.test(`messages, ${model}, ${how}: three questions, each answered by a tool`, async t => {
      const gateway = await open(t)
      const client = anthropicOf(gateway)
      const tools = [{ name: "weather", input_schema: schema }]
      const messages: Anthropic.MessageParam[] = []
      const say = async (): Promise<Anthropic.Message> => {
        const request = { model, max_tokens: 400, messages, tools }
        const message = stream
          ? await client.messages.stream(request).finalMessage()
          : await client.messages.create(request)
        messages.push({ role: "assistant", content: message.content })
        return message
      }
      for (const city of cities) {
        messages.push(question(city))
        const { content, stop_reason } = await say()
        t.equal(stop_reason, "tool_use")
        const use = content.find(block => block.type === "tool_use")
        t.match(use, { name: "weather", input: { city } })
        messages.push({
          role: "user",
          content: [{ type: "tool_result", tool_use_id: use!.id, content: `rain in ${city}` }],
        })
        t.match((await say()).content.at(-1), { type: "text", text: new RegExp(`rain in ${city}`) })
      }
      t.match(await gateway.balance(), { held: 0 })
    })
  }
}

for (const model of wires) {
  for (const stream of [false, true]) {
    t.test(`the family's own tool runner, ${model}, ${stream ? "streamed" : "whole"}`, async t => {
      const gateway = await open(t)
      const asked: unknown[] = []
      const runner = anthropicOf(gateway).beta.messages.toolRunner({
        model,
        max_tokens: 400,
        stream,
        messages: [question("Seoul")],
        tools: [
          {
            type: "custom",
            name: "weather",
            description: "The weather of a city",
            input_schema: schema,
            parse: input => input,
            run: input => {
              asked.push(input)
              return "rain in Seoul"
            },
          },
        ],
      })
      const last = await runner
      t.same(asked, [{ city: "Seoul" }])
      t.match(last.content.at(-1), { type: "text", text: /rain in Seoul/ })
      t.match(await gateway.balance(), { held: 0 })
    })
  }
}
