/** A vendor of the OpenAI wire that nobody has heard of, added as config/README.md says: two files of YAML, no code. */
import { join } from "node:path"
import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import t, { type Test } from "tap"
import { startGateway } from "../../core/gateway.ts"
import { createLog } from "../../core/observe/log.ts"
import { chatAnswer, events, type FakeVendor, fakeVendor, json } from "../fixtures/product.ts"

const key = "tg_new_vendor_test_key_000000000000000000000"

/** Of the key above. */
const digest = "bf1c2d20b71ddd6686baf39e90a4168ccb99d853dd8badeb448ad18818110162"

const gatewayYaml = (origin: string) => `
sandbox: false
listen: { port: 0 }
ops: { port: 0 }
store: { kind: sqlite, path: ":memory:" }
catalog: ./catalog.yaml
vendors:
  nimbus:
    adapter: openai
    origin: ${origin}/inference
    options: { api_path: /v2 }
    secrets: [{ env: NIMBUS_KEY }]
plugins: [metrics, access-log, edge, body-size, auth, rate-limit, model, pricing]
bootstrap:
  organisations:
    acme: { models: all, members: { alice: { credits: 100, keys: ["sha256:${digest}"] } } }
`

const catalogYaml = `
models:
  nimbus-large:
    type: llm
    targets: [{ vendor: nimbus, model: nimbus/large-2026 }]
    max_output: 4096
    capabilities: [tools, reasoning]
    messages: true
    rules: { max_tokens_as: max_completion_tokens, efforts: [low, high], effort_with_tools: drop }
    price: { input: 1000 per 1M tokens, output: 2000 per 1M tokens }
  nimbus-embed:
    type: embedding
    targets: [{ vendor: nimbus, model: embed }]
    price: { input: 1000 per 1M tokens }
`

const open = async (t: Test) => {
  const vendor = await fakeVendor(t)
  const folder = t.testdir({ "gateway.yaml": gatewayYaml(vendor.origin), "catalog.yaml": catalogYaml })
  const gateway = await startGateway({
    file: join(folder, "gateway.yaml"),
    env: { NIMBUS_KEY: "nimbus-secret" },
    log: createLog({ level: "silent" }),
  })
  t.teardown(() => gateway.stop())
  const url = gateway.url + gateway.config.basePath
  const spent = async () => (await gateway.parts.ledger.balance({ organisation: "acme", member: "alice" })).spent
  return { vendor, url, spent, client: new OpenAI({ apiKey: key, baseURL: url, maxRetries: 0 }) }
}

const messages = [{ role: "user" as const, content: "hi" }]

const streamed = (vendor: FakeVendor): void => {
  const chunk = (part: object) => JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, ...part })
  vendor.answer = (_, response) =>
    events(
      response,
      chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "Hel" }, finish_reason: null }] }),
      chunk({ choices: [{ index: 0, delta: { content: "lo" }, finish_reason: "stop" }] }),
      chunk({ choices: [], usage: chatAnswer.usage }),
      "[DONE]",
    )
}

t.test("its models are listed and answer chat, by the vendor's own path, name, secret and rules", async t => {
  const { vendor, client, spent } = await open(t)
  t.same(
    (await client.models.list()).data.map(({ id }) => id),
    ["nimbus-large", "nimbus-embed"],
  )
  const answer = await client.chat.completions.create({ model: "nimbus-large", messages, max_tokens: 50 })
  t.match(answer, { model: "nimbus-large", choices: [{ message: { content: "Hello" } }] })
  t.match(vendor.received[0], {
    path: "/inference/v2/chat/completions",
    headers: { authorization: "Bearer nimbus-secret" },
  })
  t.same(vendor.received[0]?.json(), { model: "nimbus/large-2026", messages, max_completion_tokens: 50 })
  t.equal(await spent(), 10 * 1_000 + 20 * 2_000)
})

t.test("streams are metered, though the client did not ask for usage", async t => {
  const { vendor, client, spent } = await open(t)
  streamed(vendor)
  const stream = client.chat.completions.stream({ model: "nimbus-large", messages })
  t.equal(await stream.finalContent(), "Hello")
  t.match(vendor.received[0]?.json(), { stream: true, stream_options: { include_usage: true } })
  t.equal(await spent(), 50_000)
})

t.test("agents of the Messages wire run on it, whole and streamed", async t => {
  const { vendor, url, spent } = await open(t)
  const agent = new Anthropic({ apiKey: key, baseURL: `${url}/vendor-a`, maxRetries: 0 })
  const asked = { model: "nimbus-large", max_tokens: 50, messages }
  t.match(await agent.messages.create(asked), { content: [{ type: "text", text: "Hello" }] })
  streamed(vendor)
  t.equal(await agent.messages.stream(asked).finalText(), "Hello")
  t.match(await agent.messages.countTokens({ model: "nimbus-large", messages }), { input_tokens: 5 })
  t.equal(await spent(), 2 * 50_000)
})

t.test("its embeddings and its errors need no code either", async t => {
  const { vendor, client, spent } = await open(t)
  vendor.answer = (_, response) =>
    json(response, 200, {
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }],
      usage: { prompt_tokens: 3, total_tokens: 3 },
    })
  const vectors = await client.embeddings.create({ model: "nimbus-embed", input: "hi", encoding_format: "float" })
  t.same(vectors.data[0]?.embedding, [0.5, 0.25])
  t.equal(await spent(), 3_000)
  vendor.answer = (_, response) => json(response, 422, { error: { message: "too hot", param: "temperature" } })
  const refused = client.chat.completions.create({ model: "nimbus-large", messages, temperature: 2 })
  await t.rejects(refused, { status: 400, message: /too hot/ })
  const effort = client.chat.completions.create({ model: "nimbus-large", messages, reasoning_effort: "medium" })
  await t.rejects(effort, { status: 400, message: /reasoning_effort/ })
  vendor.answer = (_, response) => json(response, 401, { error: { message: "nimbus-secret is wrong" } })
  const account = client.chat.completions.create({ model: "nimbus-large", messages })
  await t.rejects(account, { status: 502, message: /^(?!.*nimbus-secret)/ })
  t.equal(await spent(), 3_000)
})
