import { GoogleGenAI } from "@google/genai"
import t, { type Test } from "tap"
import { collect, openSandbox, refusalOf } from "./helpers.ts"

const open = async (t: Test): Promise<GoogleGenAI> => {
  const { origin } = await openSandbox(t)
  return new GoogleGenAI({ apiKey: "sandbox", httpOptions: { baseUrl: origin } })
}

const model = "gemini-2.5-flash"
const schema = { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] }
const config = { tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: schema }] }] }

const post = (origin: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${origin}/v1beta/${path}`, {
    method: "POST",
    headers: { "x-goog-api-key": "sandbox", ...headers },
    body: JSON.stringify(body),
  })
const contents = (text: string) => ({ contents: [{ role: "user", parts: [{ text }] }] })

t.test("a generation is answered whole, and in chunks whose counts only grow", async t => {
  const { models } = await open(t)
  const whole = await models.generateContent({ model, contents: "Count to 30" })
  t.match(whole, { candidates: [{ finishReason: "STOP", index: 0 }], modelVersion: model })
  const usage = whole.usageMetadata!
  t.equal(usage.totalTokenCount, usage.promptTokenCount! + usage.candidatesTokenCount!)
  const chunks = await collect(await models.generateContentStream({ model, contents: "Count to 30" }))
  t.equal(chunks.map(chunk => chunk.text ?? "").join(""), whole.text)
  const counts = chunks.map(chunk => chunk.usageMetadata?.candidatesTokenCount ?? 0)
  t.same(
    counts,
    [...counts].sort((one, other) => one - other),
  )
  t.same(chunks.at(-1)?.usageMetadata, usage)
  t.equal(chunks.at(-1)?.candidates?.[0]?.finishReason, "STOP")
})

t.test("a stream comes as events with CRLF and no end mark, or as one JSON array", async t => {
  const { origin } = await openSandbox(t)
  const events = await post(origin, `models/${model}:streamGenerateContent?alt=sse`, contents("Say yes"))
  t.match(events.headers.get("content-type"), /^text\/event-stream/)
  t.match(await events.text(), /^(?:data: \{[^\n]*\}\r\n\r\n){2}$/)
  const array = await post(origin, `models/${model}%3AstreamGenerateContent`, contents("Say yes"))
  t.match(array.headers.get("content-type"), /^application\/json/)
  t.match(await array.json(), [{ candidates: [{ content: { parts: [{ text: "yes" }] } }] }, {}])
})

t.test("a function is called, and its response is told", async t => {
  const { models } = await open(t)
  const asked = { role: "user", parts: [{ text: "How is the weather in Seoul?" }] }
  const called = await models.generateContent({ model, contents: [asked], config })
  t.match(called.functionCalls, [{ name: "weather", args: { city: "Seoul" } }])
  t.match(called.candidates?.[0], { finishReason: "STOP", content: { parts: [{ thoughtSignature: String }] } })
  const chunks = await collect(await models.generateContentStream({ model, contents: [asked], config }))
  t.same(
    chunks.flatMap(chunk => chunk.functionCalls ?? []),
    called.functionCalls,
  )
  const result = { role: "user", parts: [{ functionResponse: { name: "weather", response: { sky: "rain" } } }] }
  const told = await models.generateContent({
    model,
    contents: [asked, called.candidates![0]!.content!, result],
    config,
  })
  t.equal(told.text, 'The tool answered: {"sky":"rain"}')
})

t.test("thoughts are counted apart, and shown when asked for", async t => {
  const { models } = await open(t)
  const thinkingConfig = { thinkingBudget: 1024, includeThoughts: true }
  const shown = await models.generateContent({ model, contents: "Say yes", config: { thinkingConfig } })
  t.match(shown.candidates?.[0]?.content?.parts, [{ thought: true, text: /yes/ }, { text: "yes" }])
  const usage = shown.usageMetadata!
  t.ok(usage.thoughtsTokenCount! > 0)
  t.equal(usage.totalTokenCount, usage.promptTokenCount! + usage.candidatesTokenCount! + usage.thoughtsTokenCount!)
  const hidden = await models.generateContent({
    model,
    contents: "Say yes",
    config: { thinkingConfig: { thinkingBudget: 1024 } },
  })
  t.equal(hidden.candidates?.[0]?.content?.parts?.length, 1)
})

t.test("a limit cuts the text; one that the thoughts use up leaves no parts", async t => {
  const { models } = await open(t)
  const cut = await models.generateContent({ model, contents: "Count to 99", config: { maxOutputTokens: 4 } })
  t.match(cut, { candidates: [{ finishReason: "MAX_TOKENS" }], usageMetadata: { candidatesTokenCount: 4 } })
  const thinkingConfig = { thinkingBudget: 1024 }
  const none = await models.generateContent({
    model,
    contents: "Say yes",
    config: { maxOutputTokens: 4, thinkingConfig },
  })
  t.equal(none.candidates?.[0]?.finishReason, "MAX_TOKENS")
  t.equal(none.candidates?.[0]?.content?.parts, undefined)
  t.equal(none.usageMetadata?.candidatesTokenCount, undefined)
})

t.test("tokens are counted, texts embedded one by one and together", async t => {
  const { origin } = await openSandbox(t)
  const { models } = new GoogleGenAI({ apiKey: "sandbox", httpOptions: { baseUrl: origin } })
  const counted = await models.countTokens({ model, contents: "Count these words" })
  const generated = await models.generateContent({ model, contents: "Count these words" })
  t.equal(counted.totalTokens, generated.usageMetadata?.promptTokenCount)
  const content = { parts: [{ text: "a" }] }
  const one = await post(origin, "models/gemini-embedding-001:embedContent", { content, outputDimensionality: 4 })
  const { embedding } = (await one.json()) as { embedding: { values: number[] } }
  t.equal(embedding.values.length, 4)
  const requests = [{ model: "models/gemini-embedding-001", content, outputDimensionality: 4 }]
  const batch = await post(origin, "models/gemini-embedding-001:batchEmbedContents", { requests })
  t.same(await batch.json(), { embeddings: [embedding] })
  const other = await post(origin, "models/other:batchEmbedContents", { requests })
  t.match(await other.json(), { error: { code: 400, status: "INVALID_ARGUMENT" } })
})

t.test("what the vendor refuses is refused in its envelope", async t => {
  const { origin } = await openSandbox(t)
  const refused = async (path: string, body: unknown, headers: Record<string, string> = {}) =>
    (await post(origin, path, body, headers)).json()
  const method = `models/${model}:generateContent`
  t.match(await refused(method, contents("hi"), { "x-goog-api-key": "invalid" }), {
    error: { code: 403, status: "PERMISSION_DENIED" },
  })
  t.match(await refused("models/does-not-exist:generateContent", contents("hi")), {
    error: { code: 404, status: "NOT_FOUND" },
  })
  t.match(await refused(method, { contents: [] }), { error: { code: 400, status: "INVALID_ARGUMENT" } })
  t.match(await refused(method, 1), { error: { code: 400, status: "INVALID_ARGUMENT" } })
  const both = { thinkingConfig: { thinkingBudget: 1, thinkingLevel: "LOW" } }
  t.match(await refused(method, { ...contents("hi"), generationConfig: both }), { error: { code: 400 } })
  const busy = await refused(method, contents("hi"), { "x-sandbox-fault": "429" })
  t.match(busy, { error: { code: 429, status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "1s" }] } })
  const { models } = await open(t)
  const stops = ["a", "b", "c", "d", "e", "f"]
  t.match(await refusalOf(models.generateContent({ model, contents: "hi", config: { stopSequences: stops } })), {
    status: 400,
  })
})
