/** Usage of the generate-content wire: the numbers are those of the payloads, computed by hand. */
import t from "tap"
import { JsonArraySplitter } from "../../core/http/json-array.ts"
import adapter from "../../plugins/vendors/google/index.ts"
import { eventsOf, meter, usageSuite } from "../fixtures/metering.ts"
import { recorded } from "../fixtures/recorded.ts"

const { generate, embed } = adapter.apis

usageSuite(t, "google", generate, {
  "google-429-retry-info.json": ["none"],
  "google-embed-embed-error.exchange.json": ["none"],
  "google-embed-query-with-dimensions.exchange.json": ["none"],
  "google-model-gemini-3-5-flash.exchange.json": [{ input: 15, output: 1 + 72, reasoning: 72 }],
  "google-model-max-tokens-thinking-model-empty-response.exchange.json": [{ input: 15, output: 2, reasoning: 2 }],
  "google-model-safety-settings.exchange.json": [{ input: 14 }],
  "google-model-structured-output.exchange.json": [
    { input: 69, output: 14 },
    { input: 91, output: 21 },
  ],
  "google-native-output.exchange.json": [{ input: 8, output: 20 }],
  "google-reasoning-gemini3.chunks.txt": [{ input: 9, output: 23 + 302, reasoning: 302 }],
  "google-reasoning-gemini3.json": [{ input: 9, output: 29 + 258, reasoning: 258 }],
  "google-stream-tool-call-arguments.chunks.txt": [{ input: 26, output: 23 + 132, reasoning: 132 }],
  "google-stream-usage-is-live-mid-stream.exchange.json": [{ input: 18, output: 80 + 35, reasoning: 35 }],
  // The prompt grows from 55 to 257 in the last chunk.
  "google-streaming-tool-call-thought-signature.exchange.json": [
    { input: 29, output: 10 + 202, reasoning: 202 },
    { input: 257, output: 8 },
  ],
  "google-text.chunks.txt": [{ input: 9, output: 23 + 185, reasoning: 185 }],
  "google-text.json": [{ input: 9, output: 28 + 244, reasoning: 244 }],
  "google-tool-call-gemini3.chunks.txt": [{ input: 29, output: 15 + 804, reasoning: 804 }],
  "google-tool-call-gemini3.json": [{ input: 29, output: 15 + 1801, reasoning: 1801 }],
  "google-vertex-stream-tool-call-arguments-nested.1.chunks.txt": [{ input: 31, output: 684 + 1026, reasoning: 1026 }],
  // The first answer is that of a token count.
  "google-vertexai-count-tokens-forwards-native-tools.exchange.json": [
    "none",
    { input: 13, output: 7 + 32, reasoning: 32 },
  ],
})

const whole = (answer: unknown) => ({ streamed: false, body: Buffer.from(JSON.stringify(answer)) })

t.test("the same stream as a JSON array reports the same, however it is cut", async t => {
  for (const name of ["google-text.chunks.txt", "google-tool-call-gemini3.chunks.txt"]) {
    const [answer] = recorded("google", name)
    if (answer === undefined) return t.fail(name)
    const chunks = eventsOf(answer.body).map(event => event.data.toString())
    const array = Buffer.from(`[${chunks.join("\n,\r\n")}\n]\n`)
    for (const size of [1, 7, array.length]) {
      const reader = generate.usage()
      const splitter = new JsonArraySplitter(event => reader.event(event), { maxEventBytes: 1e6, onOverflow() {} })
      for (let at = 0; at < array.length; at += size) splitter.push(array.subarray(at, at + size))
      splitter.end()
      t.same({ ...reader.report(), surprises: [] }, meter(generate, answer), `${name} in chunks of ${size}`)
    }
    t.same(meter(generate, { streamed: false, body: array }), meter(generate, answer), `${name} whole`)
  }
})

t.test("cache, tool prompts, sound and images have their own buckets", async t => {
  const usageMetadata = {
    promptTokenCount: 500,
    cachedContentTokenCount: 200,
    toolUsePromptTokenCount: 40,
    candidatesTokenCount: 90,
    thoughtsTokenCount: 25,
    totalTokenCount: 655,
    promptTokensDetails: [
      { modality: "TEXT", tokenCount: 400 },
      { modality: "AUDIO", tokenCount: 100 },
    ],
    cacheTokensDetails: [{ modality: "AUDIO", tokenCount: 30 }],
    candidatesTokensDetails: [
      { modality: "IMAGE", tokenCount: 50 },
      { modality: "AUDIO", tokenCount: 10 },
    ],
    serviceTier: "priority",
  }
  t.match(meter(generate, whole({ candidates: [], usageMetadata })), {
    usage: {
      input: 500 - 200 - 70 + 40,
      cache_read: 200,
      audio_input: 70,
      output: 30 + 25,
      image_output: 50,
      audio_output: 10,
      reasoning: 25,
    },
    serviceTier: "priority",
  })
})

t.test(
  "searches are billed by the query, in older generations by the answer, and not once more in each chunk",
  async t => {
    const chunk = (modelVersion: string, queries: readonly string[]) => ({
      modelVersion,
      candidates: [{ content: { parts: [{ text: "a" }] }, groundingMetadata: { webSearchQueries: queries } }],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 6 },
    })
    const searches = (...chunks: object[]) => meter(generate, whole(chunks)).usage?.web_search
    t.equal(searches(chunk("gemini-3-pro", ["a", "b"])), 2)
    t.equal(searches(chunk("gemini-3-pro", ["a"]), chunk("gemini-3-pro", ["a", "b"])), 2)
    t.equal(searches(chunk("gemini-3-pro", ["a", "b"]), chunk("gemini-3-pro", [])), 2, "told once")
    t.equal(searches(chunk("gemini-2.5-flash", ["a", "b"])), 1)
    t.equal(searches(chunk("gemini-2.5-flash", [])), undefined)
  },
)

t.test("output is counted in UTF-8 bytes of text and arguments, pictures are not text", async t => {
  const parts = [
    { text: "né" },
    { thought: true, text: "hm" },
    { functionCall: { name: "f", args: { a: 1 } } },
    { functionCall: { name: "f", partialArgs: [{ b: 2 }] } },
    { executableCode: { language: "PYTHON", code: "1 + 1" } },
    { inlineData: { mimeType: "image/png", data: "AAAA" } },
  ]
  t.equal(meter(generate, whole({ candidates: [{ content: { parts } }] })).outputBytes, 3 + 2 + 7 + 9 + 5)
})

t.test("vectors without counts show that something was delivered", async t => {
  const [answer] = recorded("google", "google-embed-query-with-dimensions.exchange.json")
  t.same(answer && meter(embed, answer), { outputBytes: 1, wordless: true, surprises: [] })
  const counted = { embedding: { values: [1] }, usageMetadata: { promptTokenCount: 6 } }
  t.same(meter(embed, whole(counted)).usage, { input: 6 })
})

t.test("one count makes a report, a chunk without any does not take it back", async t => {
  const usage = (...reports: readonly object[]) =>
    meter(generate, whole(reports.map(usageMetadata => ({ usageMetadata })))).usage
  t.same(usage({ thoughtsTokenCount: 9 }), { output: 9, reasoning: 9 })
  t.same(usage({ totalTokenCount: 0 }), {})
  const counts = { promptTokenCount: 5, candidatesTokenCount: 2 }
  t.same(usage(counts, { trafficType: "ON_DEMAND" }), { input: 5, output: 2 })
})

t.test("bad counts are refused and noted, garbage is nothing", async t => {
  const usageMetadata = { promptTokenCount: 1e300, candidatesTokenCount: 4, thoughtsTokenCount: "9" }
  t.match(meter(generate, whole({ usageMetadata })), { usage: { output: 4 }, surprises: ["bad_count"] })
  t.same(meter(generate, { streamed: false, body: Buffer.from("[{broken") }).surprises, ["bad_json"])
  const bodies = ["", "[]", "[null]", "3", '{"candidates":{}}', '{"candidates":[{"content":{"parts":"x"}}]}']
  for (const body of bodies) {
    t.equal(meter(generate, { streamed: false, body: Buffer.from(body) }).usage, undefined, body)
    t.equal(meter(embed, { streamed: false, body: Buffer.from(body) }).usage, undefined, body)
  }
})
