/** Usage of every recorded answer in OpenAI's wires: the numbers are those of the payloads, computed by hand. */
import t from "tap"
import adapter from "../../plugins/vendors/openai/index.ts"
import { meter, type UsageTable, usageSuite } from "../fixtures/metering.ts"
import { recorded } from "../fixtures/recorded.ts"

const { chat, embeddings, responses } = adapter.apis

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
