import OpenAI from "openai"
import t from "tap"
import { collect, refusalOf } from "../sandbox/helpers.ts"
import { failingFirst, openaiOf, openGateway, poorKey, spentAtRest } from "./open.ts"

const model = "gpt-4.1"
const ask = (content: string) => [{ role: "user" as const, content }]
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const tools = [{ type: "function" as const, function: { name: "weather", parameters: schema } }]

const chargeOf = (usage: { prompt_tokens: number; completion_tokens: number } | undefined): number =>
  1_000 * (usage?.prompt_tokens ?? 0) + 2_000 * (usage?.completion_tokens ?? 0)

t.test("the client works with and without a slash after its base URL", async t => {
  const gateway = await openGateway(t)
  for (const slash of ["", "/"] as const) {
    const client = openaiOf(gateway, { slash })
    const models = await collect(await client.models.list())
    t.same(
      models.map(({ id }) => id),
      ["gpt-4.1", "claude-sonnet-4-5", "gemini-2.5-flash", "text-embedding-3-small"],
    )
    t.match(await client.models.retrieve(model), { id: model, object: "model" })
    t.match(await client.chat.completions.create({ model, messages: ask("Say yes") }), {
      choices: [{ message: { content: "yes" } }],
    })
  }
})

t.test("a whole answer says its price, which is what the balance loses", async t => {
  const gateway = await openGateway(t)
  const { data, response } = await openaiOf(gateway)
    .chat.completions.create({ model, messages: ask("What is 12 * 12?") })
    .withResponse()
  t.equal(data.choices[0]?.message.content, "12 * 12 = 144")
  const micros = chargeOf(data.usage)
  t.equal(Number(response.headers.get("x-credits-charged")), micros / 1_000_000)
  t.match(await gateway.balance(), { spent: micros, held: 0 })
})

t.test("a stream says the same as the whole answer and costs the same", async t => {
  const gateway = await openGateway(t)
  const client = openaiOf(gateway)
  const whole = await client.chat.completions.create({ model, messages: ask("Count to 30") })
  const stream = client.chat.completions.stream({
    model,
    messages: ask("Count to 30"),
    stream_options: { include_usage: true },
  })
  const final = await stream.finalChatCompletion()
  t.equal(final.choices[0]?.message.content, whole.choices[0]?.message.content)
  t.same(final.usage, whole.usage)
  t.equal(await spentAtRest(gateway), 2 * chargeOf(whole.usage))
})

t.test("a tool loop runs to its end, whole and streamed", async t => {
  const client = openaiOf(await openGateway(t))
  const asked = ask("How is the weather in Seoul?")
  const first = await client.chat.completions.create({ model, messages: asked, tools })
  const message = first.choices[0]!.message
  t.match(message.tool_calls, [{ function: { name: "weather", arguments: '{"city":"Seoul"}' } }])
  const result = { role: "tool" as const, tool_call_id: message.tool_calls![0]!.id, content: "rain" }
  const told = { model, messages: [...asked, message, result], tools }
  t.match((await client.chat.completions.create(told)).choices, [{ message: { content: "The tool answered: rain" } }])
  const weather = {
    type: "function" as const,
    function: {
      name: "weather",
      description: "The weather in a city",
      parameters: schema,
      parse: (text: string) => JSON.parse(text) as { readonly city: string },
      function: ({ city }: { readonly city: string }) => `rain in ${city}`,
    },
  }
  const runner = client.chat.completions.runTools({ model, messages: asked, stream: true, tools: [weather] })
  t.equal(await runner.finalContent(), "The tool answered: rain in Seoul")
})

t.test("a stream that its client leaves is charged by what the vendor generated", async t => {
  const gateway = await openGateway(t)
  const client = openaiOf(gateway)
  const request = { model, messages: ask("Count to 60") }
  const whole = chargeOf((await client.chat.completions.create(request)).usage)
  const stream = await client.chat.completions.create({ ...request, stream: true })
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break // leaving the loop aborts the call
  t.equal(await spentAtRest(gateway, whole + 1), 2 * whole)
})

t.test("each refusal is the error class of its status, and costs nothing", async t => {
  const gateway = await openGateway(t, 2)
  const say = (client: OpenAI, name = model) =>
    refusalOf(client.chat.completions.create({ model: name, messages: ask("hi") }))
  const stranger = await say(openaiOf(gateway, { key: "tg_nobody" }))
  t.ok(stranger instanceof OpenAI.AuthenticationError)
  t.match(stranger, { status: 401, code: "invalid_api_key", requestID: String })
  t.match(await say(openaiOf(gateway, { key: poorKey })), {
    status: 402,
    error: { message: "Credit balance exhausted" },
  })
  const client = openaiOf(gateway)
  const unknown = await say(client, "no-such-model")
  t.ok(unknown instanceof OpenAI.NotFoundError)
  t.match(unknown, { error: { message: "Model 'no-such-model' not found" } })
  const stop = ["a", "b", "c", "d", "e"]
  const tooMany = await refusalOf(client.chat.completions.create({ model, messages: ask("hi"), stop }))
  t.ok(tooMany instanceof OpenAI.BadRequestError)
  const limited = await say(client)
  t.ok(limited instanceof OpenAI.RateLimitError)
  t.match((limited as InstanceType<typeof OpenAI.RateLimitError>).headers?.get("retry-after"), /^\d+$/)
  t.match(await gateway.balance(), { spent: 0, held: 0 })
})

t.test("what the client retries is answered, and charged once", async t => {
  const gateway = await openGateway(t)
  for (const fault of ["429", "500", "refuse"]) {
    const { spent } = await gateway.balance()
    const { fetch, asked } = failingFirst(1, fault)
    const client = openaiOf(gateway, { fetch, retries: 2 })
    const answer = await client.chat.completions.create({ model, messages: ask("Say yes") })
    t.equal(answer.choices[0]?.message.content, "yes", fault)
    t.equal(asked(), 2)
    t.match(await gateway.balance(), { spent: spent + chargeOf(answer.usage), held: 0 })
  }
})

t.test("a stream whose vendor dies is an error in the client, and only reported usage is charged", async t => {
  const gateway = await openGateway(t)
  const { fetch } = failingFirst(1, "die")
  const stream = await openaiOf(gateway, { fetch }).chat.completions.create({
    model,
    messages: ask("Count to 60"),
    stream: true,
  })
  t.ok((await refusalOf(collect(stream))) instanceof OpenAI.APIError)
  t.equal(await spentAtRest(gateway, 0), 0)
})

t.test("responses are answered whole and streamed", async t => {
  const gateway = await openGateway(t)
  const client = openaiOf(gateway)
  const whole = await client.responses.create({ model, input: "Say yes" })
  t.equal(whole.output_text, "yes")
  const final = await client.responses.stream({ model, input: "Say yes" }).finalResponse()
  t.equal(final.output_text, "yes")
  const { input_tokens, output_tokens } = whole.usage!
  t.equal(await spentAtRest(gateway), 2 * (1_000 * input_tokens + 2_000 * output_tokens))
})

t.test("embeddings come as numbers, whichever coding the client asks for", async t => {
  const gateway = await openGateway(t)
  const client = openaiOf(gateway)
  const request = { model: "text-embedding-3-small", input: ["one", "two"], dimensions: 8 }
  const coded = await client.embeddings.create(request) // the client's own choice is base64
  const plain = await client.embeddings.create({ ...request, encoding_format: "float" })
  t.equal(coded.data.length, 2)
  for (const [at, { embedding }] of coded.data.entries()) {
    t.equal(embedding.length, 8)
    t.same(
      embedding.map(one => Math.fround(one)),
      plain.data[at]?.embedding.map(one => Math.fround(one)),
    )
  }
  t.equal((await gateway.balance()).spent, 2 * 1_000 * plain.usage.prompt_tokens)
})
