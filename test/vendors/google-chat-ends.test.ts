/** How answers of the generate-content wire end: reasons, silence, blocked prompts, cuts, faults inside of a 200. */
import { isDeepStrictEqual } from "node:util"
import fc from "fast-check"
import t from "tap"
import { assembled, candidate, chunksOf, streamOf, whole } from "../fixtures/google-chat.ts"
import { recorded } from "../fixtures/recorded.ts"

const endOf = (answer: object) => {
  const { message, finish_reason } = whole(answer).choices[0]!
  const [streamed] = assembled(chunksOf(streamOf(answer))).choices
  return { message, finish_reason, streamed }
}

t.test("each reason has its word at the hub, and an answer without output says why", async t => {
  const reasons: Readonly<Record<string, string>> = {
    SAFETY: "content_filter",
    RECITATION: "content_filter",
    PROHIBITED_CONTENT: "content_filter",
    SPII: "content_filter",
    MODEL_ARMOR: "content_filter",
    IMAGE_SAFETY: "content_filter",
    MALFORMED_FUNCTION_CALL: "stop",
    UNEXPECTED_TOOL_CALL: "stop",
    OTHER: "stop",
    NEVER_HEARD_OF: "stop",
    constructor: "stop",
  }
  for (const [reason, word] of Object.entries(reasons)) {
    const { message, finish_reason, streamed } = endOf({
      candidates: [{ finishReason: reason, finishMessage: "Because." }],
    })
    // Only what was filtered is a refusal.
    const said = word === "stop" ? message.content : message.refusal
    t.match(said, `${reason}. Because.`)
    t.match({ message, finish_reason }, { message: word === "stop" ? { refusal: null } : { content: null } })
    t.equal(finish_reason, word)
    t.match(streamed, { text: message.content ?? "", refusal: message.refusal ?? "", reasons: [word] }, reason)
    t.match(endOf(candidate([{ text: "a" }], reason)), {
      message: { content: "a", refusal: null },
      finish_reason: word,
      streamed: { text: "a", refusal: "", reasons: [word] },
    })
  }
})

t.test("an answer of nothing is never a silent success", async t => {
  const content = "The model ended without an answer."
  const empty = { message: { content, refusal: null }, finish_reason: "stop" }
  t.match(endOf(candidate([], "STOP")), { ...empty, streamed: { text: content, refusal: "", reasons: ["stop"] } })
  t.match(endOf(candidate([{ text: "" }], "STOP")), empty)
  t.match(endOf(candidate([{ text: "hm", thought: true }], "STOP")), empty)
  t.match(endOf(candidate([], "MAX_TOKENS")), { message: { content: "", refusal: null }, finish_reason: "length" })
  for (const answer of [{}, { candidates: [] }, { usageMetadata: { promptTokenCount: 1 } }]) {
    t.throws(() => whole(answer), { code: "upstream_unreadable" })
    t.throws(() => chunksOf(streamOf(answer)), { code: "upstream_unavailable" })
  }
})

t.test("a blocked prompt is filtered content, whole and streamed", async t => {
  const answer = {
    promptFeedback: { blockReason: "SAFETY" },
    usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 },
  }
  t.match(endOf(answer), {
    message: { content: null, refusal: /blocked.*SAFETY/ },
    finish_reason: "content_filter",
    streamed: { text: "", refusal: /blocked.*SAFETY/, reasons: ["content_filter"] },
  })
  t.match(whole(answer).usage, { prompt_tokens: 4, completion_tokens: 0 })
})

t.test("bug 30: STOP in every chunk is one finish reason, at the end", async t => {
  const chunks = chunksOf(streamOf(candidate([{ text: "a" }], "STOP"), candidate([{ text: "b" }], "STOP")))
  const reasons = chunks.flatMap(({ choices }) => choices.map(one => one.finish_reason))
  t.same(reasons, [null, null, null, "stop"])
  t.equal(assembled(chunks).choices[0]?.text, "ab")
  t.same(
    assembled(chunksOf(streamOf(candidate([{ text: "a" }], "STOP"), candidate([], "MAX_TOKENS")))).choices[0]?.reasons,
    ["length"],
  )
})

t.test("a tool call ends with tool_calls although the vendor says STOP; a limit stays a limit", async t => {
  const call = [{ functionCall: { name: "f" } }]
  t.match(endOf(candidate(call, "STOP")), { finish_reason: "tool_calls", streamed: { reasons: ["tool_calls"] } })
  t.match(endOf(candidate(call, "MAX_TOKENS")), { finish_reason: "length", streamed: { reasons: ["length"] } })
})

// ---- unhappy streams ----

t.test("a stream that is cut throws: no reason is made up", async t => {
  const cut = { code: "upstream_unavailable" }
  const torn = { code: /^upstream_un(available|readable)$/ } // between two events, or inside of one
  t.throws(() => chunksOf(streamOf(candidate([{ text: "a" }]))), cut)
  t.throws(() => chunksOf(Buffer.alloc(0)), cut)
  const whole = streamOf(candidate([{ text: "a" }]), candidate([{ text: "b" }], "STOP"))
  for (let size = 0; size < whole.length - 4; size += 5)
    t.throws(() => chunksOf(whole.subarray(0, size)), torn, `${size} bytes`)
  const second = { candidates: [{ index: 1, content: { parts: [{ text: "c" }] } }] }
  t.throws(() => chunksOf(streamOf(candidate([{ text: "a" }], "STOP"), second)), cut, "one of two choices")
  const holed = whole.toString().replace(/^data: .*$/m, 'data: {"candidates":[{"con')
  t.throws(() => chunksOf(Buffer.from(holed)), { code: "upstream_unreadable" }, "an answer with a hole is not whole")
})

t.test("an error inside of a 200 is the vendor's fault, as an object and in an array", async t => {
  const overloaded = { error: { code: 503, message: "at org-123456789", status: "UNAVAILABLE" } }
  for (const answer of [overloaded, [overloaded], [candidate([{ text: "a" }]), overloaded]]) {
    t.throws(() => whole(answer), { code: "upstream_overloaded", message: /overloaded/ })
    t.throws(() => chunksOf(streamOf(candidate([{ text: "a" }]), answer)), { code: "upstream_overloaded" })
  }
  const [limited] = recorded("google", "google-429-retry-info.json")
  const expected = { code: "upstream_rate_limited", headers: { "retry-after": "35" } }
  t.throws(() => whole(limited?.body), expected)
  t.throws(() => whole({ error: { code: 400, message: "Bad schema", status: "INVALID_ARGUMENT" } }), {
    code: "upstream_invalid",
    message: "Bad schema",
  })
})

t.test("what cannot be read is the vendor's fault", async t => {
  for (const body of ["", "<html>", "{", "[]", "3", "null", '{"candidates":{}}']) {
    t.throws(() => whole(Buffer.from(body)), { code: "upstream_unreadable" }, body)
    t.throws(() => chunksOf(Buffer.from(`data: ${body}\r\n\r\n`)), { code: /^upstream_un(available|readable)$/ }, body)
  }
  const odd = { candidates: [null, { content: { parts: [null, 3, { text: 5 }] }, index: -1, finishReason: "STOP" }] }
  t.match(whole(odd).choices, [{ index: 0 }, { index: 1, finish_reason: "stop" }])
})

t.test("an end marker of another wire does no harm", async t => {
  const body = Buffer.concat([streamOf(candidate([{ text: "a" }], "STOP")), Buffer.from("data: [DONE]\n\n")])
  t.equal(assembled(chunksOf(body)).choices[0]?.text, "a")
})

// ---- any stream ----

const word = fc.string({ unit: "binary", maxLength: 6 })
const part = fc.oneof(
  word.map(text => ({ text })),
  word.map(text => ({ text, thought: true })),
  fc.record({
    functionCall: fc.record({
      name: fc.constantFrom("f", "g"),
      args: fc.dictionary(word, fc.jsonValue({ maxDepth: 1 })),
    }),
  }),
)

t.test("any answer is the same streamed as whole, however its parts and bytes are cut", async () => {
  const cuts = fc.record({
    chunks: fc.array(fc.array(part, { maxLength: 3 }), { minLength: 1, maxLength: 5 }),
    reason: fc.constantFrom("STOP", "MAX_TOKENS", "SAFETY", "OTHER"),
    size: fc.integer({ min: 1, max: 64 }),
  })
  fc.assert(
    fc.property(cuts, ({ chunks, reason, size }) => {
      const [expected] = whole(candidate(chunks.flat(), reason)).choices
      const bytes = streamOf(...chunks.map(parts => candidate(parts)), candidate([], reason))
      const [found] = assembled(chunksOf(bytes, {}, size)).choices
      const message = expected?.message
      const wanted = {
        text: message?.content ?? "",
        thoughts: message?.reasoning_content ?? "",
        refusal: message?.refusal ?? "",
        calls: (message?.tool_calls ?? []).map(call => call.function),
        reasons: [expected?.finish_reason],
      }
      return isDeepStrictEqual({ ...found, calls: found?.calls.map(call => call.function) }, wanted)
    }),
  )
})
