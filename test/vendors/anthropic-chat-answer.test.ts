/** Answers and streams of the Messages wire as a chat client must see them, the odd ones too. */
import fc from "fast-check"
import t from "tap"
import type { StreamEvent } from "../../core/index.ts"
import {
  bytesAsEvents,
  contextFor,
  eventsFrom,
  putTogether,
  spoke,
  streamedAnswer,
  type WireEvent,
  wholeOf,
} from "../fixtures/anthropic-chat.ts"

const start = (usage: Record<string, unknown> = { input_tokens: 10, output_tokens: 1 }) => ({
  type: "message_start",
  message: { id: "msg_1", role: "assistant", content: [], usage },
})
const open = (index: number, content_block: Record<string, unknown>) => ({
  type: "content_block_start",
  index,
  content_block,
})
const delta = (index: number, type: string, fields: Record<string, unknown>) => ({
  type: "content_block_delta",
  index,
  delta: { type, ...fields },
})
const close = (index: number) => ({ type: "content_block_stop", index })
const last = (stop_reason: string | null, usage: Record<string, unknown> = { output_tokens: 7 }, more = {}) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null, ...more },
  usage,
})
const stop = { type: "message_stop" }
const text = (index: number, ...parts: readonly string[]) => [
  open(index, { type: "text", text: "" }),
  ...parts.map(part => delta(index, "text_delta", { text: part })),
  close(index),
]
const tool = (index: number, id: string, name: string, ...parts: readonly string[]) => [
  open(index, { type: "tool_use", id, name, input: {} }),
  ...parts.map(part => delta(index, "input_json_delta", { partial_json: part })),
  close(index),
]
const read = (...events: readonly WireEvent[]) => putTogether(streamedAnswer(eventsFrom(...events)))

/** The deltas of a stream's chunks, in order. */
const deltas = (...events: readonly WireEvent[]) =>
  streamedAnswer(eventsFrom(...events)).flatMap(({ choices }) =>
    (choices as readonly { readonly delta: unknown }[]).map(({ delta }) => delta),
  )

const message = (fields: Record<string, unknown>) => ({
  type: "message",
  content: [],
  stop_reason: "end_turn",
  usage: { input_tokens: 10, output_tokens: 7 },
  ...fields,
})

// ---- tool calls ----

t.test("bug 31: calls are counted from 0, whatever the indexes of their blocks are", async t => {
  const events = [start(), ...text(0, "Now."), ...tool(1, "a", "look", '{"at"', ":1}"), ...tool(2, "b", "go", "{}")]
  t.same(deltas(...events, last("tool_use"), stop), [
    { role: "assistant", content: "" },
    { content: "Now." },
    { tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"at"' } }] },
    { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
    { tool_calls: [{ index: 1, id: "b", type: "function", function: { name: "go", arguments: "" } }] },
    { tool_calls: [{ index: 1, function: { arguments: "{}" } }] },
    {},
  ])
})

t.test("bug 11: fragments of calls that are open at the same time stay with their call and its id", async t => {
  const { calls } = read(
    start(),
    open(0, { type: "tool_use", id: "a", name: "look", input: {} }),
    open(1, { type: "tool_use", id: "b", name: "go", input: {} }),
    delta(1, "input_json_delta", { partial_json: '{"to":2}' }),
    delta(0, "input_json_delta", { partial_json: '{"at":1}' }),
    close(0),
    close(1),
    last("tool_use"),
    stop,
  )
  t.same(calls, [
    { id: "a", name: "look", arguments: '{"at":1}' },
    { id: "b", name: "go", arguments: '{"to":2}' },
  ])
})

t.test("a call without any argument has an empty object; one that came whole has its own", async t => {
  const whole = [open(1, { type: "tool_use", id: "b", name: "go", input: { to: 2 } }), close(1)]
  const { calls } = read(start(), ...tool(0, "a", "look", "", ""), ...whole, last("tool_use"), stop)
  t.same(
    calls.map(call => call.arguments),
    ["{}", '{"to":2}'],
  )
})

t.test("a host that closes no block leaves no call without its object", async t => {
  const block = open(0, { type: "tool_use", id: "a", name: "look", input: {} })
  t.match(read(start(), block, last("tool_use"), stop).calls, [{ id: "a", arguments: "{}" }])
})

t.test("bug 5: large arguments in many fragments are joined as they were written", async t => {
  const written = JSON.stringify({ text: 'quotes " and ünïcode \u{1f600} '.repeat(2_000) })
  const parts = written.match(/[\s\S]{1,37}/g) ?? []
  const { calls } = read(start(), ...tool(0, "a", "write", ...parts), last("tool_use"), stop)
  t.equal(calls[0]?.arguments, written)
})

t.test("bug 10: a call of a tool without a name is an error, not an empty call", async t => {
  t.throws(() => read(start(), ...tool(0, "a", "", "{}"), last("tool_use"), stop), { code: "upstream_unreadable" })
  const content = [{ type: "tool_use", id: "a", name: "", input: {} }]
  t.throws(() => wholeOf(message({ content })), { code: "upstream_unreadable" })
})

t.test("bug 43: a call without an id is given one, each its own", async t => {
  const content = ["look", "look"].map(name => ({ type: "tool_use", id: "", name, input: {} }))
  const whole = wholeOf(message({ content, stop_reason: "tool_use" })).calls.map(({ id }) => id)
  t.equal(new Set(whole).size, 2)
  t.notOk(whole.includes(""))
  const streamed = read(start(), ...tool(0, "", "look"), ...tool(1, "", "look"), last("tool_use"), stop).calls
  t.same(
    streamed.map(({ id }) => id),
    whole,
  )
})

t.test("bug 6: an answer with calls ends with them, whatever the vendor says; one without text has none", async t => {
  const content = [{ type: "tool_use", id: "a", name: "look", input: {} }]
  t.match(wholeOf(message({ content, stop_reason: "end_turn" })), { finish: "tool_calls" })
  t.equal(read(start(), ...tool(0, "a", "look"), last("end_turn"), stop).finish, "tool_calls")
  const answer = spoke.whole(Buffer.from(JSON.stringify(message({ content }))), contextFor(), { names: new Map() })
  t.match(answer, { choices: [{ message: { content: null } }] })
})

t.test("the vendor's own tools are no calls of the client", async t => {
  const server = [
    open(0, { type: "server_tool_use", id: "srv", name: "web_search", input: {} }),
    delta(0, "input_json_delta", { partial_json: '{"query":"x"}' }),
    close(0),
    open(1, { type: "web_search_tool_result", tool_use_id: "srv", content: [] }),
    close(1),
  ]
  const { calls, content, finish } = read(start(), ...server, ...text(2, "Found."), last("end_turn"), stop)
  t.same([calls, content, finish], [[], "Found.", "stop"])
})

t.test("the tool that stands for the content streams as content", async t => {
  const own = { names: new Map(), answerTool: "json" }
  const events = [start(), ...tool(0, "a", "json", '{"city":', '"Bonn"}'), last("tool_use"), stop]
  const answer = putTogether(streamedAnswer(eventsFrom(...events), contextFor(), own))
  t.match(answer, { content: '{"city":"Bonn"}', calls: [], finish: "stop" })
  const empty = [start(), ...tool(0, "a", "json"), last("tool_use"), stop]
  t.equal(putTogether(streamedAnswer(eventsFrom(...empty), contextFor(), own)).content, "{}")
})

// ---- thinking ----

const thought = [
  open(0, { type: "thinking", thinking: "", signature: "" }),
  delta(0, "thinking_delta", { thinking: "Let me " }),
  delta(0, "thinking_delta", { thinking: "look." }),
  delta(0, "signature_delta", { signature: "sig" }),
  delta(0, "signature_delta", { signature: "ned" }),
  close(0),
  open(1, { type: "redacted_thinking", data: "secret" }),
  close(1),
]

t.test("bug 7: thinking is reasoning, never content; signatures stay out of sight", async t => {
  const chunks = streamedAnswer(eventsFrom(start(), ...thought, ...text(2, "Seen."), last("end_turn"), stop))
  t.match(putTogether(chunks), { content: "Seen.", reasoning: "Let me look." })
  t.notMatch(JSON.stringify(chunks), /signed|secret|sig/)
})

t.test("the thinking before a tool call is kept with it, whole and streamed alike", async t => {
  const kept: (readonly [string, unknown])[] = []
  const context = contextFor(undefined, { keep: (id, value) => kept.push([id, JSON.parse(value)]) })
  const events = [start(), ...thought, ...tool(2, "a", "look"), ...tool(3, "b", "look"), last("tool_use"), stop]
  streamedAnswer(eventsFrom(...events), context)
  const blocks = [
    { type: "thinking", thinking: "Let me look.", signature: "signed" },
    { type: "redacted_thinking", data: "secret" },
  ]
  const calls = ["a", "b"].map(id => ({ type: "tool_use", id, name: "look", input: {} }))
  wholeOf(message({ content: [...blocks, ...calls], stop_reason: "tool_use" }), context)
  const wanted = ["a", { model: "vendor-model", blocks }]
  t.same(kept, [wanted, wanted])
})

t.test("thinking that is unsigned, huge or leads to no call is not kept", async t => {
  const kept: string[] = []
  const context = contextFor(undefined, { keep: id => kept.push(id) })
  const call = { type: "tool_use", id: "a", name: "look", input: {} }
  const bad = [{ signature: "", thinking: "x" }, { thinking: "x" }, { signature: "s", thinking: "x".repeat(70_000) }]
  for (const fields of bad) wholeOf(message({ content: [{ type: "thinking", ...fields }, call] }), context)
  wholeOf(message({ content: [{ type: "thinking", thinking: "x", signature: "s" }] }), context)
  t.same(kept, [])
})

// ---- how answers end ----

t.test("each way to stop has its word in chat", async t => {
  const words = {
    end_turn: "stop",
    stop_sequence: "stop",
    pause_turn: "stop",
    max_tokens: "length",
    model_context_window_exceeded: "length",
    refusal: "content_filter",
    something_new: "stop",
    constructor: "stop",
  }
  for (const [reason, finish] of Object.entries(words)) {
    t.equal(wholeOf(message({ stop_reason: reason })).finish, finish, reason)
    t.equal(read(start(), last(reason), stop).finish, finish, `${reason}, streamed`)
  }
  t.equal(wholeOf(message({ stop_reason: null })).finish, "stop")
})

t.test("a call that was cut says so", async t => {
  t.equal(read(start(), ...tool(0, "a", "look", '{"at"'), last("max_tokens"), stop).finish, "length")
})

t.test("a refusal says why, when the vendor does", async t => {
  const told = { type: "refusal", category: "cyber", explanation: "This may do harm." }
  const whole = wholeOf(message({ stop_reason: "refusal", stop_details: told }))
  t.match(whole, { content: "", refusal: "This may do harm.", finish: "content_filter" })
  const streamed = read(start(), { type: "ping" }, last("refusal", {}, { stop_details: told }), stop)
  t.match(streamed, { content: "", refusal: "This may do harm.", finish: "content_filter" })
  t.equal(wholeOf(message({ stop_reason: "refusal", stop_details: null })).refusal, null)
})

// ---- usage ----

const usage = (prompt: number, cached: number, written: number, output: number, reasoning = 0) => ({
  prompt_tokens: prompt,
  completion_tokens: output,
  total_tokens: prompt + output,
  prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
  completion_tokens_details: { reasoning_tokens: reasoning },
})

t.test("bugs 21 and 32: the prompt counts what the cache read and wrote, from the first event", async t => {
  const counts = { input_tokens: 10, cache_read_input_tokens: 200, cache_creation_input_tokens: 30, output_tokens: 1 }
  const thinking = { output_tokens: 7, output_tokens_details: { thinking_tokens: 5 } }
  t.same(read(start(counts), ...text(0, "Hi"), last("end_turn", thinking), stop).usage, usage(240, 200, 30, 7, 5))
  t.same(wholeOf(message({ usage: { ...counts, ...thinking } })).usage, usage(240, 200, 30, 7, 5))
})

t.test("bugs 23 and 24: later counts replace earlier ones; what they do not name stays", async t => {
  const first = start({ input_tokens: 43, cache_read_input_tokens: 5, output_tokens: 1 })
  const events = [
    first,
    last(null, { input_tokens: 61, output_tokens: 3 }),
    last("end_turn", { output_tokens: 9 }),
    stop,
  ]
  t.same(read(...events).usage, usage(66, 5, 0, 9))
})

t.test("usage is a chunk of its own only for those who ask", async t => {
  const events = eventsFrom(start(), ...text(0, "Hi"), last("end_turn"), stop)
  const asked = streamedAnswer(events)
  t.same(asked.at(-1)?.choices, [])
  t.ok(asked.slice(0, -1).every(chunk => chunk.usage === null))
  const quiet = streamedAnswer(events, contextFor(undefined, { includeUsage: false }))
  t.ok(quiet.every(chunk => !("usage" in chunk) && (chunk.choices as unknown[]).length === 1))
})

// ---- odd streams ----

t.test("bug 34: a second beginning, at once or midway, begins nothing", async t => {
  const chunks = deltas(start(), start(), ...text(0, "Hi"), start(), ...text(1, " there"), last("end_turn"), stop)
  t.same(chunks, [{ role: "assistant", content: "" }, { content: "Hi" }, { content: " there" }, {}])
})

t.test("unknown events, blocks and deltas are passed over, and what is padded or unnamed is read", async t => {
  const odd = eventsFrom(
    { type: "ping" },
    { type: "new_event", delta: { text: "no" } },
    open(0, { type: "new_block", text: "no" }),
    delta(0, "new_delta", { text: "no" }),
    close(0),
    delta(9, "input_json_delta", { partial_json: "no" }),
    close(9),
  )
  const padded = Buffer.from(
    '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"yes"   }   }',
  )
  const events: readonly StreamEvent[] = [
    ...eventsFrom(start()),
    ...odd,
    ...eventsFrom(open(1, { type: "text", text: "Oh " })),
    { data: padded },
    ...eventsFrom(close(1), last("end_turn"), stop, stop),
    { data: Buffer.from("[DONE]") },
  ]
  t.match(putTogether(streamedAnswer(events)), { content: "Oh yes", calls: [], finish: "stop" })
})

t.test("an answer that says nothing has an empty text; one that only calls has none", async t => {
  const answer = (content: readonly object[]) =>
    spoke.whole(Buffer.from(JSON.stringify(message({ content }))), contextFor(), { names: new Map() })
  t.match(answer([]), { choices: [{ message: { content: "" } }] })
  const call = { type: "tool_use", id: "a", name: "look", input: {} }
  t.match(answer([call]), { choices: [{ message: { content: null } }] })
})

t.test("a torn event is an error: an answer with a hole is not passed off as whole", async t => {
  const torn = { type: "content_block_delta", data: Buffer.from('{"type":"content_block_delta","ind') }
  t.throws(() => streamedAnswer([...eventsFrom(start()), torn]), { code: "upstream_unreadable" })
})

t.test("an error event ends the stream with the vendor's fault, told only where it is the client's", async t => {
  const failure = (type: string, message: string) => () =>
    read(start(), ...text(0, "Hi"), { type: "error", error: { type, message } })
  t.throws(failure("overloaded_error", "Overloaded at host-7"), {
    code: "upstream_overloaded",
    message: /^(?!.*host-7)/,
  })
  t.throws(failure("invalid_request_error", "prompt is too long"), {
    code: "upstream_invalid",
    message: "prompt is too long",
  })
  t.throws(failure("billing_error", "Pay us"), { code: "upstream_account", message: /^(?!.*Pay us)/ })
  t.throws(failure("new_error", "What?"), { code: "upstream_unavailable" })
})

t.test("an answer that is no message is an error", async t => {
  for (const body of ["", "<html>", "[]", "{}", '{"type":"message"}']) {
    t.throws(
      () => spoke.whole(Buffer.from(body), contextFor(), { names: new Map() }),
      { code: "upstream_unreadable" },
      body,
    )
  }
  const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
  t.throws(() => wholeOf(error), { code: "upstream_overloaded" })
})

t.test(
  "bytes cut inside a character, lines that end in any way, comments and two events at once change nothing",
  async t => {
    const lines = [
      ["message_start", start()],
      ["content_block_start", open(0, { type: "text", text: "" })],
      ["content_block_delta", delta(0, "text_delta", { text: "Grüße \u{1f600}" })],
      ["message_delta", last("end_turn")],
      ["message_stop", stop],
    ] as const
    for (const end of ["\n", "\r\n", "\r"]) {
      const body = lines
        .map(([type, data]) => `: hm${end}event:${type}${end}data:${JSON.stringify(data)}${end}${end}`)
        .join("")
      for (const size of [1, 3, 1_000]) {
        const answer = putTogether(streamedAnswer(bytesAsEvents(Buffer.from(body), size)))
        t.match(answer, { content: "Grüße \u{1f600}", finish: "stop" }, JSON.stringify([end, size]))
      }
    }
  },
)

// ---- any answer ----

const said = fc.string({ maxLength: 12 })
const inputs = fc.dictionary(
  fc.string({ maxLength: 4 }).filter(key => key !== "__proto__"),
  fc.jsonValue({ maxDepth: 1 }),
  { maxKeys: 3 },
)
const blocks = fc.array(
  fc.oneof(
    said.map(text => ({ type: "text", text })),
    said.map(thinking => ({ type: "thinking", thinking, signature: "s" })),
    inputs.map(input => ({ type: "tool_use", name: "look", input })),
    inputs.map(input => ({ type: "server_tool_use", id: "srv", name: "web_search", input })),
    said.map(data => ({ type: "redacted_thinking", data })),
  ),
  { maxLength: 6 },
)

/** The block as the vendor streams it, cut into pieces of some size. */
const eventsOfBlock = (block: Readonly<Record<string, unknown>>, index: number, size: number): readonly WireEvent[] => {
  const pieces = (value: unknown): readonly string[] => String(value).match(new RegExp(`[^]{1,${size}}`, "g")) ?? []
  const deltas =
    block.input !== undefined
      ? pieces(JSON.stringify(block.input)).map(part => delta(index, "input_json_delta", { partial_json: part }))
      : block.type === "thinking"
        ? pieces(block.thinking).map(part => delta(index, "thinking_delta", { thinking: part }))
        : pieces(block.text ?? "").map(part => delta(index, "text_delta", { text: part }))
  const begun = { ...block, ...("input" in block ? { input: {} } : {}) }
  const empty = block.type === "text" ? { text: "" } : block.type === "thinking" ? { thinking: "" } : {}
  return [open(index, { ...begun, ...empty }), ...deltas, close(index)]
}

t.test("any answer is the same to a client, whole and streamed", async () => {
  fc.assert(
    fc.property(blocks, fc.integer({ min: 1, max: 5 }), (content, size) => {
      const named = content.map((block, at) => (block.type === "tool_use" ? { ...block, id: `t${at}` } : block))
      const whole = wholeOf(message({ content: named, usage: { input_tokens: 10, output_tokens: 7 } }))
      const streamed = read(
        start(),
        ...named.flatMap((block, at) => eventsOfBlock(block, at, size)),
        last("end_turn"),
        stop,
      )
      const [one, other] = [JSON.stringify(whole), JSON.stringify(streamed)]
      if (one !== other) throw new Error(`${one} is not ${other}`)
    }),
    { numRuns: 300 },
  )
})
