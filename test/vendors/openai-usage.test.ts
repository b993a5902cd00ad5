/** Usage of chat completions, embeddings and Responses: the numbers are those of the payloads, computed by hand. */
import t from "tap"
import adapter from "../../plugins/vendors/openai/index.ts"
import { meter, type UsageTable, usageSuite } from "../fixtures/metering.ts"
import { recorded } from "../fixtures/recorded.ts"

const { chat, embeddings, responses, moderations } = adapter.apis

const chatTables: Readonly<Record<string, UsageTable>> = {
  "openai-chat": {
    "azure-model-router.1.chunks.txt": [{ input: 15, output: 78, reasoning: 64 }],
    "document-as-binary-content-input.exchange.json": [{ input: 235, output: 13 }],
    "image-url-tool-response.exchange.json": [
      { input: 46, output: 11 },
      { input: 503, output: 8 },
    ],
    "max-completion-tokens-o3-mini.exchange.json": [{ input: 7, output: 87, reasoning: 64 }],
    // The first two answers are another wire's.
    "multiple-agent-tool-calls.exchange.json": ["none", "none", { input: 104, output: 16 }, { input: 129, output: 9 }],
    "openai-moderation-stream.exchange.json": [{ input: 13, output: 11 }],
    "openai-native-output.exchange.json": [
      { input: 71, output: 12 },
      { input: 92, output: 15 },
    ],
    "openai-o1-mini-system-role-developer.exchange.json": ["none"],
    "openai-text.chunks.txt": [{ input: 16, output: 300 }],
    "openai-text.json": [{ input: 16, output: 363 }],
    "openai-web-search-tool-model-not-supported.exchange.json": ["none"],
    "openai-web-search-tool.exchange.json": [{ input: 11, output: 17 }],
  },
  "openai-compatible": {
    "anthropic-fallback-tool-call.sse": ["none"],
    // Thoughts stand in the total only.
    "compatible-api-with-tool-calls-without-id.exchange.json": [
      { input: 35, output: 12 + (109 - 35 - 12), reasoning: 109 - 35 - 12 },
      { input: 66, output: 6 + (100 - 66 - 6), reasoning: 100 - 66 - 6 },
    ],
    "openrouter-errors-raised.exchange.json": ["none", "none", "none"],
    // More reasoning than output is reported: the output stands.
    "openrouter-stream-error.exchange.json": [{ input: 43, output: 10, reasoning: 10 }],
    "openrouter-tool-calling.exchange.json": [{ input: 134, output: 43 }],
    "xai-text.chunks.txt": [
      { input: 12 - 11, cache_read: 11, output: 2 + 340, reasoning: 340, cost_dollars: 0.000172125 },
    ],
    "xai-text.json": [{ input: 12 - 2, cache_read: 2, output: 2 + 320, reasoning: 320, cost_dollars: 0.00016415 }],
  },
  "openai-completions": {
    "openai-completion-text.chunks.txt": [{ input: 14, output: 16 }],
    "openai-completion-text.json": [{ input: 14, output: 16 }],
  },
  deepseek: {
    "deepseek-deferred-capability-with-thinking.exchange.json": [
      { input: 563 - 512, cache_read: 512, output: 116, reasoning: 60 },
      { input: 875, output: 79, reasoning: 26 },
      { input: 976 - 896, cache_read: 896, output: 61, reasoning: 25 },
    ],
    "deepseek-json.json": [{ input: 495 - 320, cache_read: 320, output: 144, reasoning: 118 }],
    "deepseek-reasoning.chunks.txt": [{ input: 18, output: 219, reasoning: 205 }],
    "deepseek-reasoning.json": [{ input: 18, output: 345, reasoning: 315 }],
    "deepseek-text.chunks.txt": [{ input: 13, output: 400 }],
    "deepseek-text.json": [{ input: 13, output: 300 }],
  },
  "xai-chat": {
    // The completion count leaves reasoning out: 12 + 1 + 290 = 303, the total.
    "xai-text.chunks.txt": [
      { input: 12 - 11, cache_read: 11, output: 1 + 290, reasoning: 290, cost_dollars: 0.000146625 },
    ],
    "xai-text.json": [{ input: 12 - 2, cache_read: 2, output: 1 + 228, reasoning: 228, cost_dollars: 0.00011765 }],
  },
  groq: {
    "groq-reasoning.chunks.txt": [{ input: 17, output: 1107, reasoning: 963 }],
    "groq-reasoning.json": [{ input: 17, output: 649, reasoning: 570 }],
    "groq-text.chunks.txt": [{ input: 45, output: 662 }],
    "groq-text.json": [{ input: 45, output: 607 }],
    "tool-use-failed-error.exchange.json": [
      "none",
      { input: 301, output: 52, reasoning: 22 },
      { input: 336 - 256, cache_read: 256, output: 96, reasoning: 59 },
    ],
  },
  mistral: {
    "mistral-history-uses-prompt-cache.exchange.json": [
      { input: 253, output: 5 },
      { input: 268 - 224, cache_read: 224, output: 5 },
    ],
    "mistral-text.chunks.txt": [{ input: 13, output: 8 }],
    "mistral-text.json": [{ input: 13, output: 434 }],
    "mistral-tool-call.chunks.txt": [{ input: 124, output: 22 }],
    "mistral-tool-call.json": [{ input: 124, output: 22 }],
  },
  moonshot: {
    "moonshotai-reasoning.json": [{ input: 20 - 10, cache_read: 10, output: 30, reasoning: 22 }],
    "moonshotai-stream.chunks.txt": [{ input: 9, output: 12, reasoning: 7 }],
    "moonshotai-text.json": [{ input: 9, output: 5 }],
  },
  alibaba: {
    "alibaba-reasoning.chunks.txt": [{ input: 24, output: 1355, reasoning: 1084 }],
    "alibaba-reasoning.json": [{ input: 24, output: 1668, reasoning: 1353 }],
    "alibaba-text.chunks.txt": [{ input: 18, output: 779 }],
    "alibaba-text.json": [{ input: 18, output: 1064 }],
  },
  perplexity: {
    "perplexity-text.chunks.txt": [{ input: 11, output: 434 }],
    "perplexity-text.json": [{ input: 11, output: 392 }],
  },
}

for (const [vendor, table] of Object.entries(chatTables)) usageSuite(t, vendor, chat, table)

usageSuite(t, "openai-embeddings", embeddings, {
  "openai-embed-query.exchange.json": [{ input: 4 }],
  "openai-embedding.json": [{ input: 12 }],
})

usageSuite(t, "openai-responses", responses, {
  "background-mode-vcr.exchange.json": ["none", "none", { input: 15, output: 9 }],
  "github-copilot-id-rotation.1.chunks.txt": [{ input: 19, output: 105, reasoning: 44 }],
  "openai-apply-patch-tool-delete.1.chunks.txt": [{ input: 24 }],
  "openai-apply-patch-tool.1.chunks.txt": [{ input: 642, output: 67 }],
  "openai-apply-patch-tool.1.json": [{ input: 642, output: 67 }],
  "openai-code-interpreter-tool.1.chunks.txt": [
    { input: 6047 - 2944, cache_read: 2944, output: 1623, reasoning: 1408 },
  ],
  "openai-code-interpreter-tool.1.json": [{ input: 2283, output: 1928, reasoning: 1792 }],
  "openai-compaction.1.chunks.txt": [{ input: 51097 - 49792, cache_read: 49792, output: 2505 }],
  "openai-compaction.1.json": [{ input: 51097, output: 2056 }],
  "openai-error.1.chunks.txt": ["none"],
  "openai-error.1.json": ["none"],
  "openai-file-search-tool.1.chunks.txt": [{ input: 3737 - 2304, cache_read: 2304, output: 621, reasoning: 512 }],
  "openai-file-search-tool.1.json": [{ input: 3700 - 2560, cache_read: 2560, output: 741, reasoning: 640 }],
  "openai-mcp-tool-approval.1.chunks.txt": [{ input: 422, output: 48 }],
  "openai-mcp-tool-approval.1.json": [{ input: 422, output: 104, reasoning: 64 }],
  "openai-mcp-tool-approval.3.chunks.txt": [{ input: 609, output: 48 }],
  "openai-mcp-tool-approval.3.json": [{ input: 587, output: 104, reasoning: 64 }],
  "openai-mcp-tool.1.chunks.txt": [{ input: 11791, output: 963, reasoning: 512 }],
  "openai-mcp-tool.1.json": [{ input: 6700, output: 1078, reasoning: 704 }],
  "openai-reasoning-encrypted-content.1.chunks.txt": [
    { input: 134, output: 28 },
    { input: 221, output: 26 },
    { input: 260, output: 26 },
    { input: 299, output: 12 },
  ],
  "openai-reasoning-encrypted-content.1.json": [{ input: 865, output: 163, reasoning: 128 }],
  "openai-responses-compact-messages.exchange.json": [
    { input: 29, output: 9 },
    { input: 51, output: 9 },
    { input: 156, output: 190 },
    { input: 298, output: 8 },
  ],
  "openai-responses-model-http-error.exchange.json": ["none"],
  "openai-responses-model-simple-response-with-tool-call.exchange.json": [
    { input: 40, output: 18 },
    { input: 67, output: 11 },
  ],
  "openai-responses-stream.exchange.json": [
    { input: 255, output: 16 },
    { input: 278, output: 9 },
  ],
  "openai-responses-thinking-with-tool-calls.exchange.json": [
    { input: 124, output: 1926, reasoning: 1792 },
    { input: 2087 - 2048, cache_read: 2048, output: 124 },
  ],
  "openai-shell-container-multiturn.1.chunks.txt": [{ input: 802, output: 20 }],
  "openai-shell-container-multiturn.1.json": [{ input: 800, output: 19 }],
  "openai-tool-search.1.chunks.txt": [{ input: 640, output: 46, reasoning: 20 }],
  "openai-tool-search.1.json": [{ input: 640, output: 46, reasoning: 20 }],
  // Two searches and four looks at pages; one search and two looks.
  "openai-web-search-tool.1.chunks.txt": [
    { input: 31073 - 3712, cache_read: 3712, output: 4416, reasoning: 3712, web_search: 2 },
  ],
  "openai-web-search-tool.1.json": [
    { input: 19681 - 3712, cache_read: 3712, output: 3773, reasoning: 3136, web_search: 1 },
  ],
  "programmatic-tool-calling.1.chunks.txt": [{ input: 631, output: 87, reasoning: 37 }],
  "programmatic-tool-calling.1.json": [{ input: 631, output: 139, reasoning: 55 }],
  "programmatic-tool-calling.3.chunks.txt": [{ input: 757, output: 35 }],
  "programmatic-tool-calling.3.json": [{ input: 802, output: 58 }],
  "responses-count-tokens.exchange.json": ["none"],
})

// This host names its counts as chat completions do, and one of its recordings is a chat stream.
const azureText = { input: 11, output: 11 }
t.test("counts in the names of chat completions are read on Responses too", async t => {
  for (const name of ["azure-text.1.chunks.txt", "azure-text.1.json"]) {
    t.same(
      recorded("azure-responses", name).map(answer => meter(responses, answer).usage),
      [azureText],
    )
  }
  const [whole] = recorded("azure-responses", "azure-deepseek-reasoning.1.json")
  t.same(whole && meter(responses, whole).usage, { input: 19, output: 1969 })
  const [streamed] = recorded("azure-responses", "azure-deepseek-reasoning.1.chunks.txt")
  t.same(streamed && meter(chat, streamed).usage, { input: 19, output: 1720 })
})

usageSuite(t, "open-responses", responses, {
  "lmstudio-basic.1.chunks.txt": [{ input: 31 - 30, cache_read: 30, output: 282 }],
  "lmstudio-basic.1.json": [{ input: 136, output: 3677, reasoning: 2456 }],
  "lmstudio-tool-call.1.chunks.txt": [{ input: 182 - 2, cache_read: 2, output: 61, reasoning: 48 }],
  "lmstudio-tool-call.1.json": [{ input: 1189 - 891, cache_read: 891, output: 11 }],
  "openai-pdf-input-file.1.chunks.txt": [{ input: 44, output: 4 }],
  "openai-pdf-input-file.1.json": [{ input: 44, output: 4 }],
})

usageSuite(t, "xai-responses", responses, {
  "xai-code-execution-tool.1.json": [{ input: 1606 - 1235, cache_read: 1235, output: 292, reasoning: 190 }],
  "xai-file-search-tool.1.json": [{ input: 500, output: 150 }],
  "xai-image-generation-tool.1.chunks.txt": [
    { input: 80, cache_read: 20, output: 50, reasoning: 30, cost_dollars: 0.0000123456 },
  ],
  "xai-image-generation-tool.1.json": [
    { input: 80, cache_read: 20, output: 50, reasoning: 30, cost_dollars: 0.0000123456 },
  ],
  "xai-text-streaming.1.chunks.txt": [{ input: 216 - 192, cache_read: 192, output: 863, reasoning: 237 }],
  "xai-text-with-reasoning-streaming.1.chunks.txt": [
    { input: 216 - 192, cache_read: 192, output: 923, reasoning: 323 },
  ],
})

const whole = (answer: object) => ({ streamed: false, body: Buffer.from(JSON.stringify(answer)) })
const stream = (...chunks: (object | string)[]) => ({
  streamed: true,
  body: Buffer.from(
    chunks.map(chunk => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`).join(""),
  ),
})

t.test("cached, written and spoken tokens leave the input; the buckets add up to what was reported", async t => {
  const usage = {
    prompt_tokens: 1000,
    completion_tokens: 200,
    total_tokens: 1200,
    prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 100, audio_tokens: 50 },
    completion_tokens_details: { reasoning_tokens: 40, audio_tokens: 60 },
  }
  t.same(meter(chat, whole({ choices: [], usage })).usage, {
    input: 250,
    cache_read: 600,
    cache_write_5m: 100,
    audio_input: 50,
    output: 140,
    audio_output: 60,
    reasoning: 40,
  })
})

t.test("a wrapped usage counts when there is no other, and a later usage replaces an earlier one", async t => {
  const early = { choices: [], x_groq: { usage: { prompt_tokens: 5, completion_tokens: 1 } } }
  t.same(meter(chat, stream(early, "[DONE]")).usage, { input: 5, output: 1 })
  const late = {
    choices: [],
    usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } },
  }
  t.same(meter(chat, stream(early, late, { choices: [], usage: null }, "[DONE]")).usage, {
    input: 1,
    cache_read: 4,
    output: 3,
  })
  const empty = { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }
  t.same(meter(chat, stream(early, empty)).usage, { input: 5, output: 1 }, "zeros after counts tell nothing")
})

t.test(
  "bug 41: reasoning beside the completion is billed with it, reasoning inside of it is not billed twice",
  async t => {
    const usageOf = (completion_tokens: number, total_tokens: number, reasoning_tokens: number) => ({
      usage: { prompt_tokens: 12, completion_tokens, total_tokens, completion_tokens_details: { reasoning_tokens } },
    })
    for (const answer of [usageOf(2, 334, 320), usageOf(322, 334, 320)])
      t.same(meter(chat, whole(answer)).usage, { input: 12, output: 322, reasoning: 320 })
  },
)

t.test(
  "bugs 4 and 37: output of Responses counts once, whatever ids its items have and whether deltas came",
  async t => {
    const output = [{ type: "message", id: "c", content: [{ type: "output_text", text: "Hello" }] }]
    const deltas = ["Hel", "lo"].map((delta, at) => ({ type: "response.output_text.delta", item_id: `${at}`, delta }))
    const done = { type: "response.output_text.done", item_id: "b", text: "Hello" }
    const completed = { type: "response.completed", response: { id: "r", output } }
    for (const events of [[...deltas, done, completed], [done, completed], [completed]])
      t.equal(meter(responses, stream(...events)).outputBytes, 5)
  },
)

t.test("bug 47: a response that is queued in the background has no usage yet", async t => {
  const queued = { id: "resp_1", status: "queued", background: true, usage: null, output: [] }
  const { usage, id, outputBytes } = meter(responses, whole(queued))
  t.same({ usage, id, outputBytes }, { usage: undefined, id: "resp_1", outputBytes: 0 })
})

t.test("cached tokens are found under every name that vendors give them", async t => {
  const counts = { prompt_tokens: 10, completion_tokens: 1 }
  for (const more of [
    { prompt_tokens_details: { cached_tokens: 4 } },
    { prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 },
    { cached_tokens: 4 },
  ]) {
    const { usage } = meter(chat, whole({ choices: [], usage: { ...counts, ...more } }))
    t.same(usage, { input: 6, cache_read: 4, output: 1 }, JSON.stringify(more))
  }
})

t.test("a total tells what lies beside a completion only where both sides are told", async t => {
  const usageOf = (usage: object) => meter(chat, whole({ choices: [], usage })).usage
  t.same(usageOf({ completion_tokens: 7, total_tokens: 30 }), { output: 7 })
  t.same(usageOf({ prompt_tokens: 12, total_tokens: 30 }), { input: 12 })
  const thoughts = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 30 }
  t.same(usageOf(thoughts), { input: 12, output: 18, reasoning: 11 }, "thoughts without a name")
  const none = { completion_tokens_details: { reasoning_tokens: 0 } }
  t.same(usageOf({ ...thoughts, ...none }), { input: 12, output: 18, reasoning: 11 })
  const inside = { completion_tokens_details: { reasoning_tokens: 3 } }
  t.same(usageOf({ ...thoughts, ...inside }), { input: 12, output: 7, reasoning: 3 }, "what is told is inside")
})

t.test("a cost in ticks is dollars; what is no such number is no cost", async t => {
  const cost = (cost_in_usd_ticks: unknown) =>
    meter(chat, whole({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, cost_in_usd_ticks } })).usage
      ?.cost_dollars
  t.equal(cost(25_000_000), 0.0025)
  for (const odd of [0, -1, 1.5, 2 ** 53, "25", null, undefined]) t.equal(cost(odd), undefined, String(odd))
})

t.test("the tier that any chunk names is that of the answer", async t => {
  const chunks = [{ choices: [], service_tier: "priority" }, { choices: [] }, { choices: [], service_tier: null }]
  t.equal(meter(chat, stream(...chunks)).serviceTier, "priority")
})

t.test("counts that no answer can have are refused and noted", async t => {
  for (const bad of [-1, 1.5, 1e12, "12", true, {}, [3]]) {
    const found = meter(chat, whole({ choices: [], usage: { prompt_tokens: bad, completion_tokens: 7 } }))
    t.same(found.usage, { output: 7 }, JSON.stringify(bad))
    t.same(found.surprises, ["bad_count"])
  }
  const more = { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 99 } }
  t.match(meter(chat, whole({ usage: more })), { usage: { cache_read: 10, output: 1 }, surprises: ["part_over_total"] })
  t.match(meter(chat, whole({ usage: { prompt_tokens: Number.NaN } })).usage, undefined)
})

t.test("garbage is no usage and no exception", async t => {
  for (const body of [
    "",
    "null",
    "[]",
    "7",
    "<html>",
    '{"usage":[1]}',
    '{"choices":{"0":1}}',
    '{"choices":[null,3]}',
  ]) {
    for (const api of [chat, responses, embeddings, moderations]) {
      t.equal(meter(api, { streamed: false, body: Buffer.from(body) }).usage, undefined, body)
      t.equal(meter(api, stream(body)).usage, undefined, body)
    }
  }
  t.same(meter(chat, stream("{broken")).surprises, ["bad_json"])
})

t.test("output is counted in UTF-8 bytes: text, refusals, reasoning, tool arguments, once", async t => {
  const deltas = [
    { role: "assistant", content: "" },
    { content: "héllo" },
    { reasoning_content: "hm" },
    { refusal: "no" },
    { tool_calls: [{ index: 0, function: { name: "f", arguments: '{"a"' } }] },
    {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "abc" }] },
        { type: "text", text: "de" },
      ],
    },
    { tool_calls: [{ index: 1, type: "custom", custom: { name: "g", input: "abc" } }] },
    { function_call: { name: "f", arguments: "{}" } },
    { audio: { transcript: "word" } },
    {},
  ]
  const chunks = deltas.map(delta => ({ choices: [{ index: 0, delta, message: { content: "cumulative" } }] }))
  t.equal(meter(chat, stream(...chunks, "[DONE]")).outputBytes, 6 + 2 + 2 + 4 + 5 + 3 + 2 + 4)

  const delta = { type: "response.output_text.delta", delta: "héllo" }
  const done = { type: "response.output_text.done", text: "héllo" }
  const onlyDone = { type: "response.function_call_arguments.done", arguments: "{}" }
  t.equal(meter(responses, stream(delta, done)).outputBytes, 6)
  t.equal(meter(responses, stream(delta, done, onlyDone)).outputBytes, 6 + 2)
})

t.test("built-in tools of Responses are billed beside the counts", async t => {
  const tool_usage = { image_gen: { input_tokens: 30, output_tokens: 4_160 }, web_search: { num_requests: 2 } }
  const usage = { input_tokens: 100, output_tokens: 20, total_tokens: 120 }
  const response = { id: "resp_1", status: "completed", service_tier: "priority", usage, tool_usage, output: [] }
  t.match(meter(responses, stream({ type: "response.completed", response })), {
    usage: { input: 130, output: 20, image_output: 4_160, web_search: 2 },
    serviceTier: "priority",
    id: "resp_1",
  })
})

t.test("searches are those that the vendor counts, else those among the items", async t => {
  const search = { type: "web_search_call", action: { type: "search" } }
  const look = { type: "web_search_call", action: { type: "open_page" } }
  const answer = (more: object) => whole({ output: [search, look, search], usage: { input_tokens: 1 }, ...more })
  const searches = (more: object) => meter(responses, answer(more)).usage?.web_search ?? 0
  t.equal(searches({}), 2)
  t.equal(searches({ tool_usage: { web_search: { num_requests: 5 } } }), 5)
  t.equal(searches({ tool_usage: { web_search: { num_requests: 0 } } }), 0)
  const details = { server_side_tool_usage_details: { web_search_calls: 3, x_search_calls: 1 } }
  t.equal(searches({ usage: { input_tokens: 1, ...details } }), 4)
})

t.test("the id of a stored response is known with the first event", async t => {
  const reader = responses.usage()
  const created = { type: "response.created", response: { id: "resp_9", usage: null } }
  reader.event({ type: "response.created", data: Buffer.from(JSON.stringify(created)) })
  t.same(reader.report(), { outputBytes: 0, id: "resp_9" })
})

t.test("vectors without counts show that something was delivered; a total alone is input", async t => {
  t.same(meter(embeddings, whole({ data: [{ embedding: [0.1] }] })), { outputBytes: 1, wordless: true, surprises: [] })
  t.same(meter(embeddings, whole({ data: [{}], usage: { total_tokens: 9 } })).usage, { input: 9 })
  t.same(meter(moderations, whole({ results: [{ flagged: false }] })).usage, { requests: 1 })
})
