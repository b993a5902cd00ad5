/** What the first events of a stream tell: content, nothing yet, or an error inside a 200. */
import fc from "fast-check"
import t from "tap"
import type { Adapter, Api, EventSign } from "../../core/index.ts"
import anthropic from "../../plugins/vendors/anthropic/index.ts"
import google from "../../plugins/vendors/google/index.ts"
import openai from "../../plugins/vendors/openai/index.ts"
import { eventsOf } from "../fixtures/metering.ts"
import { recorded, recordedFiles } from "../fixtures/recorded.ts"

const { chat, responses } = openai.apis
const { messages } = anthropic.apis
const { generate } = google.apis

const sign = (api: Api, payload: unknown, type?: string): EventSign => {
  const data = Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload))
  return api.sign(type === undefined ? { data } : { type, data })
}

/** Signs of a recorded stream up to the first that is not neutral. */
const firstSigns = (api: Api, folder: string, name: string): readonly string[] => {
  const signs: string[] = []
  for (const event of eventsOf(recorded(folder, name)[0]?.body ?? Buffer.alloc(0))) {
    const found = api.sign(event)
    signs.push(found.sign === "fault" ? `fault ${found.fault.kind} ${found.fault.status}` : found.sign)
    if (found.sign !== "neutral") break
  }
  return signs
}

t.test("an error event gets the kind and status that the vendor documents for its word", async t => {
  const faults: readonly (readonly [Api, string | undefined, unknown, string, number])[] = [
    [chat, undefined, { error: { message: "m", type: "server_error", code: null } }, "server", 500],
    [chat, undefined, { error: { message: "m", type: "requests", code: "rate_limit_exceeded" } }, "rate_limited", 429],
    [chat, undefined, { error: { message: "m", code: "insufficient_quota" } }, "account", 429],
    [chat, undefined, { error: { message: "m", code: "slow_down" } }, "overloaded", 503],
    [chat, undefined, { error: { message: "m", code: 429 }, choices: [] }, "rate_limited", 429],
    [chat, undefined, { error: "only a text" }, "server", 502],
    [chat, undefined, { error: { message: "m", code: "unheard_of" } }, "server", 502],
    [chat, undefined, [{ error: { code: 503, message: "m" } }], "overloaded", 503],
    [chat, undefined, { choices: [], x_groq: { id: "r", error: "over capacity" } }, "server", 502],
    [chat, undefined, { choices: null, base_resp: { status_code: 1002, status_msg: "m" } }, "rate_limited", 429],
    [chat, undefined, { choices: null, base_resp: { status_code: 1008, status_msg: "m" } }, "account", 402],
    [chat, undefined, { choices: null, base_resp: { status_code: 1026, status_msg: "m" } }, "content_policy", 400],
    [chat, undefined, { choices: null, base_resp: { status_code: 1033, status_msg: "m" } }, "server", 500],
    [chat, undefined, { error: { message: "m", code: "data_inspection_failed" } }, "content_policy", 400],
    [chat, undefined, { error: { message: "m", code: "Throttling.RateQuota" } }, "rate_limited", 429],
    [chat, undefined, { error: { message: "m", code: "InvalidParameter.DataCheck" } }, "invalid", 400],
    [chat, undefined, { error: { message: "m", code: "AccessDenied.Unpurchased" } }, "account", 403],
    [chat, undefined, { code: "InternalError.Algo", message: "m", error: {} }, "server", 500],
    [responses, "error", { type: "error", code: "server_error", message: "m", param: null }, "server", 500],
    [responses, "error", { type: "error", error: { code: "insufficient_quota", message: "m" } }, "account", 429],
    [responses, undefined, { type: "error", error: { code: "rate_limit_exceeded" } }, "rate_limited", 429],
    [responses, "response.failed", { response: { error: { code: "invalid_prompt", message: "m" } } }, "invalid", 400],
    [responses, "response.failed", { response: { error: { code: "vector_store_timeout" } } }, "timeout", 504],
    [responses, "response.failed", { response: { error: null } }, "server", 502],
    [responses, "error", "{broken", "server", 502],
    [messages, "error", { type: "error", error: { type: "overloaded_error", message: "m" } }, "overloaded", 529],
    [messages, "error", { type: "error", error: { type: "rate_limit_error" } }, "rate_limited", 429],
    [messages, "error", { type: "error", error: { type: "authentication_error" } }, "account", 401],
    [messages, "error", { type: "error", error: { type: "api_error" } }, "server", 500],
    [messages, undefined, { type: "error", error: { type: "timeout_error" } }, "timeout", 504],
    [messages, "error", { type: "error", error: { type: "new_error" } }, "server", 502],
    [generate, undefined, { error: { code: 503, status: "UNAVAILABLE", message: "m" } }, "overloaded", 503],
    [generate, undefined, { error: { code: 429, status: "RESOURCE_EXHAUSTED" } }, "rate_limited", 429],
    [generate, undefined, { error: { code: 418, status: "NEW" } }, "invalid", 418],
    [
      generate,
      undefined,
      { error: { status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] } },
      "account",
      400,
    ],
    [generate, undefined, { error: {} }, "server", 502],
    [generate, undefined, [{ error: { code: 503, status: "UNAVAILABLE" } }], "overloaded", 503],
  ]
  for (const [api, type, payload, kind, status] of faults) {
    t.match(sign(api, payload, type), { sign: "fault", fault: { kind, status } }, JSON.stringify(payload))
  }
})

t.test("bug 38: a fault in the first events of a 200 is found before any content", async t => {
  t.same(firstSigns(responses, "openai-responses", "openai-error.1.chunks.txt"), [
    "neutral",
    "neutral",
    "fault account 429",
  ])
})

t.test("nothing is content before the vendor has written something", async t => {
  const neutral: readonly (readonly [Api, string | undefined, unknown])[] = [
    [chat, undefined, { choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] }],
    [chat, undefined, { choices: [], prompt_filter_results: [], id: "", model: "" }],
    [chat, undefined, { choices: [{ delta: { content: null, tool_calls: null } }], usage: null }],
    [chat, undefined, { choices: [], x_groq: { id: "r", seed: 1, error: null } }],
    [chat, undefined, { choices: [], base_resp: { status_code: 0, status_msg: "" } }],
    [responses, "response.created", "{}"],
    [responses, "response.in_progress", "{}"],
    [responses, undefined, { type: "response.queued" }],
    [responses, "response.output_item.added", "{}"],
    [messages, "message_start", "{}"],
    [messages, "ping", { type: "ping" }],
    [messages, undefined, { type: "ping" }],
    [messages, "content_block_start", "{}"],
    [generate, undefined, { usageMetadata: { trafficType: "ON_DEMAND" } }],
    [generate, undefined, { candidates: [{ content: { role: "model", parts: [{ text: "" }] } }] }],
    [generate, undefined, { candidates: [{ content: { role: "model", parts: [{ thought: true, text: "" }] } }] }],
  ]
  for (const [api, type, payload] of neutral)
    t.same(sign(api, payload, type), { sign: "neutral" }, JSON.stringify(payload))
})

t.test("text, calls, ends and what is not understood are content", async t => {
  const content: readonly (readonly [Api, string | undefined, unknown])[] = [
    [chat, undefined, { choices: [{ delta: { content: "a" } }] }],
    [chat, undefined, { choices: [{ delta: { reasoning: "a" } }] }],
    [chat, undefined, { choices: [{ delta: { tool_calls: [{ id: "1", function: { name: "f", arguments: "" } }] } }] }],
    [chat, undefined, { choices: [{ delta: {}, finish_reason: "stop" }] }],
    [chat, undefined, "[DONE]"],
    [chat, undefined, "{broken"],
    [responses, "response.output_text.delta", { delta: "a" }],
    [responses, "response.completed", "{}"],
    [responses, "response.new_thing", "{}"],
    [messages, "content_block_delta", "{}"],
    [messages, "content_block_stop", "{}"],
    [messages, "message_delta", "{}"],
    [messages, "new_event", "{}"],
    [generate, undefined, { candidates: [{ content: { parts: [{ text: "a" }] } }] }],
    [generate, undefined, { candidates: [{ content: { parts: [{ functionCall: { name: "f" } }] } }] }],
    [generate, undefined, { candidates: [{ finishReason: "SAFETY" }] }],
    [generate, undefined, { promptFeedback: { blockReason: "OTHER" } }],
    [generate, undefined, "{broken"],
  ]
  for (const [api, type, payload] of content)
    t.same(sign(api, payload, type), { sign: "content" }, JSON.stringify(payload))
})

t.test("every recorded stream shows its content within eight events", async t => {
  const wires: readonly (readonly [Api, readonly string[]])[] = [
    [chat, ["openai-chat", "deepseek", "xai-chat", "groq", "mistral", "moonshot", "alibaba", "perplexity"]],
    [responses, ["open-responses", "xai-responses"]],
    [messages, ["anthropic"]],
    [generate, ["google"]],
  ]
  for (const [api, folders] of wires) {
    for (const folder of folders) {
      for (const name of recordedFiles(folder)) {
        if (recorded(folder, name)[0]?.streamed !== true) continue
        const signs = firstSigns(api, folder, name)
        t.equal(signs.at(-1), "content", `${folder}/${name}`)
        t.ok(signs.length <= 8, `${folder}/${name}`)
      }
    }
  }
})

t.test("no event makes an adapter throw", async () => {
  const adapters: readonly Adapter[] = [openai, anthropic, google]
  const type = fc.constantFrom(undefined, "error", "response.failed", "message_delta", "response.output_text.delta")
  const payload = fc.oneof(
    fc.jsonValue().map(value => JSON.stringify(value)),
    fc
      .record({ error: fc.jsonValue(), choices: fc.jsonValue(), usage: fc.jsonValue() })
      .map(value => JSON.stringify(value)),
    fc
      .record({ candidates: fc.jsonValue(), message: fc.jsonValue(), response: fc.jsonValue() })
      .map(value => JSON.stringify(value)),
    fc.string(),
  )
  const property = fc.property(type, payload, (type, payload) => {
    for (const api of adapters.flatMap(adapter => Object.values(adapter.apis))) {
      sign(api, payload, type)
      const reader = api.usage()
      reader.event({ data: Buffer.from(payload), ...(type === undefined ? {} : { type }) })
      reader.whole(Buffer.from(payload))
      if (!(reader.report().outputBytes >= 0)) return false
    }
    return true
  })
  fc.assert(property, { numRuns: 300 })
})
