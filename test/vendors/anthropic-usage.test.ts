/** Usage of the Messages wire: the numbers are those of the payloads, computed by hand. */
import fc from "fast-check"
import t from "tap"
import type { StreamEvent } from "../../core/index.ts"
import adapter from "../../plugins/vendors/anthropic/index.ts"
import { meter, usageSuite } from "../fixtures/metering.ts"

const { messages } = adapter.apis

usageSuite(t, "anthropic", messages, {
  // The advisor's own run is billed beside the totals.
  "anthropic-advisor-20260301.1.json": [{ input: 2414 + 2728, output: 3200 + 874 }],
  "anthropic-advisor-stop-reasons.chunks.txt": [{ input: 10, output: 20 }],
  "anthropic-advisor-stop-reasons.json": [{ input: 10, output: 20 }],
  "anthropic-cache-real-api.exchange.json": [
    { input: 3, cache_read: 1111, output: 406 },
    { input: 3, cache_read: 1111, cache_write_5m: 418, output: 33 },
  ],
  "anthropic-clear-thinking.1.chunks.txt": [{ input: 69, output: 53 }],
  "anthropic-clear-thinking.1.json": [{ input: 69, output: 33 }],
  "anthropic-code-execution-20250825.2.chunks.txt": [{ input: 15696, output: 2479 }],
  "anthropic-code-execution-20250825.2.json": [{ input: 12546, output: 1359 }],
  // The last total is larger than the lives that the first event told.
  "anthropic-code-execution-20260120-prompt-cache.1.chunks.txt": [
    { input: 6, cache_read: 6289, cache_write_5m: 3337, output: 198 },
  ],
  "anthropic-combined-context-editing.1.chunks.txt": [{ input: 50, output: 485 }],
  "anthropic-combined-context-editing.1.json": [{ input: 50, output: 418 }],
  "anthropic-compaction.1.chunks.txt": [{ input: 612 + 60385, output: 2819 + 522 }],
  "anthropic-compaction.1.json": [{ input: 682 + 60385, output: 1320 + 592 }],
  "anthropic-count-tokens-error.exchange.json": ["none"],
  // The totals are those of the model that took over; nothing is added.
  "anthropic-fallback.chunks.txt": [{ input: 412, output: 264 }],
  "anthropic-fallback.json": [{ input: 412, output: 264 }],
  "anthropic-json-output-format.1.chunks.txt": [{ input: 313, output: 305 }],
  "anthropic-json-output-format.1.json": [{ input: 371, output: 629 }],
  "anthropic-json-tool.1.chunks.txt": [{ input: 849, output: 47 }],
  "anthropic-json-tool.1.json": [{ input: 1151, output: 87 }],
  "anthropic-memory-20250818.1.json": [{ input: 1614, output: 69 }],
  "anthropic-message-delta-input-tokens.chunks.txt": [{ input: 61, output: 2 }],
  "anthropic-model-thinking-part-redacted-stream.exchange.json": [{ input: 92, output: 189 }],
  "anthropic-opus-5-features.exchange.json": [{ input: 13, output: 44, reasoning: 33 }],
  "anthropic-refusal-no-details.json": [{ input: 18, output: 5 }],
  "anthropic-text.chunks.txt": [{ input: 12, output: 30 }],
  "anthropic-text.json": [{ input: 12, output: 29 }],
  "anthropic-tool-no-args.chunks.txt": [{ input: 565, output: 48 }],
  "anthropic-tool-no-args.json": [{ input: 602, output: 93 }],
  "anthropic-tool-search-deferred-bm25.2.json": [{ input: 1398, output: 213 }],
  "anthropic-tool-search-deferred-bm25.chunks.txt": [
    { input: 879, output: 177 },
    { input: 1398, output: 213 },
    { input: 1639, output: 95 },
  ],
  "anthropic-tool-search-regex.1.chunks.txt": [
    { input: 1681, output: 163 },
    { input: 1071, output: 67 },
  ],
  "anthropic-tool-search-regex.1.json": [{ input: 1676, output: 184 }],
  "anthropic-web-fetch-tool-20260209.1.chunks.txt": [{ input: 7172, output: 144 }],
  "anthropic-web-fetch-tool-20260209.1.json": [{ input: 7204, output: 162 }],
  "anthropic-web-fetch-tool-stream.exchange.json": [{ input: 7244, output: 153 }],
  "anthropic-web-fetch-tool.2.json": [{ input: 28638, output: 365 }],
  "anthropic-web-search-tool.1.chunks.txt": [{ input: 15665, output: 795, web_search: 1 }],
  "anthropic-web-search-tool.1.json": [{ input: 27118, output: 600, web_search: 2 }],
  "duplicate-message-start.chunks.txt": [{ input: 17, output: 227 }],
  "image-url-input-invalid-mime-type.exchange.json": [{ input: 335, output: 147 }],
  "image-url-input.exchange.json": [{ input: 296, output: 91 }],
  "multiple-parallel-tool-calls.exchange.json": [
    { input: 423, output: 202 },
    { input: 771, output: 77 },
  ],
})

const whole = (usage: unknown) => ({ streamed: false, body: Buffer.from(JSON.stringify({ content: [], usage })) })
const stream = (...events: { type: string; [field: string]: unknown }[]) => ({
  streamed: true,
  body: Buffer.from(events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")),
})

t.test("cache writes go to the bucket of their life; an untold life is five minutes", async t => {
  const written = (usage: object) => meter(messages, whole({ input_tokens: 1, output_tokens: 1, ...usage })).usage
  const lives = { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 70 }
  const both = { input: 1, output: 1, cache_write_5m: 30, cache_write_1h: 70 }
  t.same(written({ cache_creation_input_tokens: 100, cache_creation: lives }), both)
  t.same(written({ cache_creation: lives }), both)
  t.same(written({ cache_creation_input_tokens: 100 }), { input: 1, output: 1, cache_write_5m: 100 })
  t.same(written({ cache_creation_input_tokens: 120, cache_creation: lives }), { ...both, cache_write_5m: 50 })
  t.same(written({ cache_creation_input_tokens: 60, cache_creation: lives }), {
    input: 1,
    output: 1,
    cache_write_1h: 60,
  })
})

t.test("a later count replaces an earlier one, and what is not told again stays", async t => {
  const answer = stream(
    { type: "message_start", message: { usage: { input_tokens: 5, cache_read_input_tokens: 9, output_tokens: 1 } } },
    { type: "message_delta", usage: { input_tokens: null, output_tokens: 4 } },
    { type: "message_delta", usage: { output_tokens: 8 } },
    { type: "message_stop" },
  )
  t.same(meter(messages, answer).usage, { input: 5, cache_read: 9, output: 8 })
})

t.test("a stream that is cut before its end still reports its input", async t => {
  const answer = stream(
    { type: "message_start", message: { usage: { input_tokens: 50, output_tokens: 1, service_tier: "standard" } } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "née" } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"a' } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
    { type: "content_block_delta", index: 0, delta: { type: "compaction_delta", content: "short" } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "not text" } },
  )
  t.same(meter(messages, answer), {
    usage: { input: 50, output: 1 },
    outputBytes: 4 + 3 + 2 + 5,
    provisional: true,
    serviceTier: "standard",
    surprises: [],
  })
})

t.test("of a whole answer text, thoughts and the input of tools are counted", async t => {
  const content = [
    { type: "thinking", thinking: "hm", signature: "not text" },
    { type: "text", text: "née" },
    { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
  ]
  const body = Buffer.from(JSON.stringify({ type: "message", content }))
  t.equal(meter(messages, { streamed: false, body }).outputBytes, 2 + 4 + 7)
})

t.test("the usual delta is counted as a parse would count it, and so is every other one", async t => {
  const counted = (event: StreamEvent): number => {
    const reader = messages.usage()
    reader.event(event)
    return reader.report().outputBytes
  }
  const usual = (text: unknown) =>
    `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${text}}`
  const word = fc.oneof(fc.string(), fc.constantFrom('"', "\\", '"delta":{"type":"text_delta","text":"', '"}}', "né"))
  const literal = fc.array(word).map(words => JSON.stringify(words.join("")))
  const data = fc
    .tuple(literal, literal)
    .chain(([first, second]) =>
      fc.constantFrom(
        `${usual(first)}}`,
        `${usual(first)} }`,
        `${usual(first)},"more":${second}}`,
        `{"type":"content_block_delta","delta":{"type":"text_delta","text":${first},"more":${second}}}`,
        `{"type":"content_block_delta","delta":{"text":${first},"more":{"delta":{"type":"text_delta","text":${second}}}}}`,
        `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":${first}}}`,
      ),
    )
  fc.assert(
    fc.property(data, json => {
      const bytes = Buffer.from(json)
      // Without a name of its own an event is always parsed.
      return counted({ type: "content_block_delta", data: bytes }) === counted({ data: bytes })
    }),
  )
  t.equal(counted({ type: "content_block_delta", data: Buffer.from(`${usual('"né"')}}`) }), 3)
})

t.test("a fast answer is of the tier fast, whatever else its tier is called", async t => {
  const tier = (more: object) => meter(messages, whole({ input_tokens: 1, output_tokens: 1, ...more })).serviceTier
  t.equal(tier({ service_tier: "standard", speed: "fast" }), "fast")
  t.equal(tier({ service_tier: "priority", speed: "standard" }), "priority")
  t.equal(tier({ speed: null }), undefined)
  t.equal(tier({ service_tier: "standard", inference_geo: "us" }), "us")
  t.equal(tier({ service_tier: "standard", inference_geo: "global" }), "standard")
  t.equal(tier({ inference_geo: "us", speed: "fast" }), "fast")
})

t.test("bad counts are refused and noted, garbage is nothing", async t => {
  const odd = meter(messages, whole({ input_tokens: -5, output_tokens: 3, cache_read_input_tokens: "9" }))
  t.match(odd, { usage: { output: 3 }, surprises: ["bad_count"] })
  for (const body of [
    "",
    "[]",
    "null",
    '"text"',
    '{"usage":3}',
    '{"usage":{"iterations":[null]}}',
    '{"content":[7]}',
  ]) {
    t.equal(meter(messages, { streamed: false, body: Buffer.from(body) }).usage, undefined, body)
    const event = { type: "message_delta", data: Buffer.from(body) }
    const reader = messages.usage()
    reader.event(event)
    t.equal(reader.report().usage, undefined, body)
  }
  t.same(meter(messages, { streamed: false, body: Buffer.from("{broken") }).surprises, ["bad_json"])
})
