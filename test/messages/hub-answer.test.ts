/** Answers of chat as clients of the Messages wire must see them: whole, and event by event. */
import fc from "fast-check"
import t from "tap"
import type { JsonObject } from "../../core/index.ts"
import { MessageEvents, wholeMessage } from "../../plugins/messages/hub/index.ts"
import { eventsOf } from "../fixtures/metering.ts"
import { recorded, recordedFiles } from "../fixtures/recorded.ts"

const head = { id: "msg_1", model: "other-model", estimatedInput: 12, stops: [] }

const chunk = (delta: JsonObject, finish_reason: string | null = null, more: JsonObject = {}) => ({
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
})
const call = (index: number | undefined, id?: string, name?: string, args?: string): JsonObject => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
})
const calls = (...fragments: readonly JsonObject[]) => chunk({ tool_calls: fragments })
const finished = (reason: string, usage?: JsonObject) => chunk({}, reason, usage === undefined ? {} : { usage })

interface Event extends JsonObject {
  readonly type: string
  readonly index?: number
  readonly content_block?: JsonObject
  readonly delta?: JsonObject
}

/** The events as a client's splitter cuts them; each must be named by its type. */
const parsed = (text: string): readonly Event[] =>
  eventsOf(Buffer.from(text)).map(({ type, data }) => {
    const event = JSON.parse(data.toString()) as Event
    if (event.type !== type) throw new Error(`${String(type)} names ${event.type}`)
    return event
  })

const eventsFor = (...chunks: readonly JsonObject[]): readonly Event[] => {
  const events = new MessageEvents(head)
  return parsed([...chunks.map(one => events.push(one)), events.end()].join(""))
}

/** The message that a client puts together; throws when the events break the wire's rules. */
const messageOf = (events: readonly Event[]): JsonObject => {
  const kinds = events.map(({ type }) => type)
  if (kinds[0] !== "message_start" || kinds.indexOf("message_start", 1) > 0) throw new Error("not one beginning")
  if (kinds.at(-2) !== "message_delta" || kinds.at(-1) !== "message_stop") throw new Error("not one end")
  const content: Record<string, unknown>[] = []
  let input: string | undefined
  let isOpen = false
  for (const { type, index, content_block, delta } of events) {
    if (type === "content_block_start") {
      if (isOpen || index !== content.length) throw new Error("blocks overlap or leave gaps")
      isOpen = true
      input = ""
      content.push({ ...content_block })
    } else if (type.startsWith("content_block_")) {
      if (!isOpen || index !== content.length - 1) throw new Error("a delta or stop of a block that is not open")
      const block = content.at(-1)!
      if (type === "content_block_stop") isOpen = false
      if (delta?.type === "text_delta") block.text = `${block.text}${delta.text}`
      if (delta?.type === "thinking_delta") block.thinking = `${block.thinking}${delta.thinking}`
      if (delta?.type === "input_json_delta") input += String(delta.partial_json)
      if (type === "content_block_stop" && block.type === "tool_use")
        block.input = input === "" ? {} : JSON.parse(input!)
    }
  }
  const end = events.at(-2)!
  return { content, stop_reason: end.delta?.stop_reason, usage: end.usage }
}

const read = (...chunks: readonly JsonObject[]) =>
  messageOf(eventsFor(...chunks)) as { content: JsonObject[]; stop_reason: string; usage: JsonObject }
const tool = (id: string, name: string, input: JsonObject = {}) => ({ type: "tool_use", id, name, input })

const whole = (message: JsonObject, finish_reason = "stop", usage: JsonObject = {}) =>
  wholeMessage({ choices: [{ index: 0, message, finish_reason }], usage }, head)

// ---- whole ----

t.test("a completion is a message", async t => {
  const message = { role: "assistant", content: "Hello", reasoning_content: "They greet.", tool_calls: null }
  t.same(whole(message, "stop", { prompt_tokens: 10, completion_tokens: 5 }), {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "other-model",
    content: [
      { type: "thinking", thinking: "They greet.", signature: "" },
      { type: "text", text: "Hello" },
    ],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 },
  })
})

t.test("bugs 6 and 40: calls end a turn whatever the vendor says, and no empty text stands before them", async t => {
  const tool_calls = [
    call(undefined, "c1", "look", '{"at":1}'),
    call(undefined, "", "go", ""),
    call(undefined, "c3", "go", "{bro"),
  ]
  for (const finish of ["stop", "tool_calls", "length"]) {
    const { content, stop_reason } = whole({ content: "", tool_calls }, finish)
    t.equal(stop_reason, "tool_use", finish)
    t.same(content, [tool("c1", "look", { at: 1 }), tool("toolu_msg_1_1", "go"), tool("c3", "go", { _raw: "{bro" })])
  }
})

t.test("each way to finish has its word", async t => {
  const words = {
    stop: "end_turn",
    length: "max_tokens",
    content_filter: "refusal",
    other: "end_turn",
    constructor: "end_turn",
  }
  for (const [finish, reason] of Object.entries(words)) {
    t.equal(whole({ content: "x" }, finish).stop_reason, reason, finish)
    t.equal(read(chunk({ content: "x" }), finished(finish)).stop_reason, reason, `${finish}, streamed`)
  }
  t.match(whole({ content: null, refusal: "I will not." }), {
    stop_reason: "refusal",
    content: [{ text: "I will not." }],
  })
  t.match(read(chunk({ refusal: "I will " }), chunk({ refusal: "not." }), finished("stop")), {
    stop_reason: "refusal",
    content: [{ text: "I will not." }],
  })
})

t.test("bug 21: cached tokens stand beside the input, which is never negative", async t => {
  const details = { cached_tokens: 80, cache_write_tokens: 15 }
  const usage = { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: details }
  const wanted = { input_tokens: 5, cache_creation_input_tokens: 15, cache_read_input_tokens: 80, output_tokens: 5 }
  t.same(whole({ content: "x" }, "stop", usage).usage, wanted)
  t.same(read(chunk({ content: "x" }), finished("stop"), { choices: [], usage }).usage, wanted)
  t.match(whole({ content: "x" }, "stop", { prompt_tokens: 3, prompt_tokens_details: details }).usage, {
    input_tokens: 0,
  })
})

t.test(
  "bugs 21 and 41: the cache under another name, and reasoning beside the completion, are told as they are billed",
  async t => {
    const counted = { prompt_tokens: 12, completion_tokens: 2, total_tokens: 14 }
    for (const name of ["cached_tokens", "prompt_cache_hit_tokens"])
      t.match(
        whole({}, "stop", { ...counted, [name]: 10 }).usage,
        { input_tokens: 2, cache_read_input_tokens: 10 },
        name,
      )
    const usage = (total_tokens: number, reasoning_tokens: number) =>
      whole({}, "stop", { ...counted, total_tokens, completion_tokens_details: { reasoning_tokens } }).usage
    t.match(
      [usage(334, 320), usage(14, 1), usage(34, 3)],
      [{ output_tokens: 322 }, { output_tokens: 2 }, { output_tokens: 2 }],
    )
  },
)

t.test("bug 10: a call without a name, or an answer without a choice, is an error", async t => {
  const error = { code: "upstream_unreadable" }
  t.throws(() => whole({ tool_calls: [call(0, "c", "", "{}")] }), error)
  t.throws(() => read(calls(call(0, "c", "", "{}")), finished("tool_calls")), error)
  t.throws(() => read(calls(call(0, "c")), finished("tool_calls")), error)
  t.throws(() => wholeMessage({ choices: [] }, head), error)
  t.throws(() => wholeMessage({}, head), error)
})

// ---- streams ----

t.test("a stream of text", async t => {
  const start = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "other-model",
    content: [],
    stop_reason: null,
    stop_sequence: null,
  }
  const none = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 }
  const events = eventsFor(
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hel" }),
    chunk({ content: "lo" }),
    finished("stop"),
  )
  t.same(events, [
    { type: "message_start", message: { ...start, usage: { input_tokens: 12, ...none } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hel" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "lo" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { input_tokens: 12, ...none, output_tokens: 2 },
    },
    { type: "message_stop" },
  ])
})

t.test("what comes goes out at once: text, thoughts, and the input of the first open call", async t => {
  const events = new MessageEvents(head)
  const kinds = (one: JsonObject) => parsed(events.push(one)).map(({ type, delta }) => delta?.type ?? type)
  t.same(kinds(chunk({ role: "assistant" })), ["message_start"])
  t.same(kinds(chunk({ reasoning: "Hm" })), ["content_block_start", "thinking_delta"])
  t.same(kinds(chunk({ content: "Now" })), ["content_block_stop", "content_block_start", "text_delta"])
  t.same(kinds(calls(call(0, "a", "look", ""))), ["content_block_stop"], "the name may go on")
  t.same(kinds(calls(call(0, undefined, undefined, '{"at"'))), ["content_block_start", "input_json_delta"])
  t.same(kinds(calls(call(0, undefined, undefined, ":1}"))), ["input_json_delta"])
})

t.test("bug 1: a call that comes in one chunk has its input in a delta", async t => {
  const events = eventsFor(calls(call(0, "a", "look", '{"at":1}')), finished("tool_calls"))
  t.match(events[1], { type: "content_block_start", content_block: tool("a", "look") })
  t.match(events[2], { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: '{"at":1}' } })
})

t.test("bug 2: an empty list of calls beside text is text", async t => {
  const { content, stop_reason } = read(
    chunk({ content: "Hel", tool_calls: [] }),
    chunk({ content: "lo", tool_calls: null }),
    finished("stop"),
  )
  t.same([content, stop_reason], [[{ type: "text", text: "Hello" }], "end_turn"])
})

t.test("bug 3: a chunk with text and a call loses neither, nor thoughts", async t => {
  const all = chunk({ tool_calls: [call(0, "a", "look", "{}")], content: "Now.", reasoning_content: "Hm." })
  t.same(read(all, finished("tool_calls")).content, [
    { type: "thinking", thinking: "Hm.", signature: "" },
    { type: "text", text: "Now." },
    tool("a", "look"),
  ])
})

t.test("bug 5: large input over many chunks arrives as it was written", async t => {
  const input = { text: 'quotes " and ünïcode \u{1f600} '.repeat(3_000) }
  const fragments = JSON.stringify(input).match(/[\s\S]{1,29}/g) ?? []
  const chunks = [
    calls(call(0, "a", "write", "")),
    ...fragments.map(part => calls(call(0, undefined, undefined, part))),
  ]
  t.same(read(...chunks, finished("tool_calls")).content, [tool("a", "write", input)])
})

t.test("bugs 11 and 31: interleaved calls keep their own input, ids and order", async t => {
  const chunks = [
    calls(call(0, "a", "look", ""), call(1, "b", "go", "")),
    calls(call(1, undefined, undefined, '{"to"')),
    calls(call(0, undefined, undefined, '{"at":')),
    calls(call(1, undefined, undefined, ":2}"), call(0, undefined, undefined, "1}")),
    chunk({ content: "Done." }),
  ]
  t.same(read(...chunks, finished("stop")).content, [
    tool("a", "look", { at: 1 }),
    tool("b", "go", { to: 2 }),
    { type: "text", text: "Done." },
  ])
})

t.test("bugs 35 and 42: indexes that start at 1, are missing or always 0 tell calls apart all the same", async t => {
  const both = [tool("a", "look", { at: 1 }), tool("b", "go", { to: 2 })]
  for (const [first, second] of [
    [1, 2],
    [undefined, undefined],
    [0, 0],
  ] as const) {
    const chunks = [
      calls(call(first, "a", "look", '{"at"'), call(first, undefined, undefined, ":1}")),
      calls(call(second, "b", "go", '{"to"'), call(second, "b", "", ":2}")),
    ]
    t.same(read(...chunks, finished("tool_calls")).content, both, `${first}, ${second}`)
  }
  const nameless = [
    calls(call(undefined, undefined, "look", '{"at":1}')),
    calls(call(undefined, undefined, "go", '{"to":2}')),
  ]
  t.match(read(...nameless, finished("tool_calls")).content, [{ name: "look" }, { name: "go" }])
})

t.test(
  "whole calls at one index and without ids are as many calls, and a name that is only repeated is none",
  async t => {
    const seoul = call(0, "", "look", '{"at":"Seoul"}')
    const busan = call(0, "", "look", '{"at":"Busan"}')
    const found = [tool("toolu_msg_1_0", "look", { at: "Seoul" }), tool("toolu_msg_1_1", "look", { at: "Busan" })]
    t.same(read(calls(seoul), calls(busan), finished("tool_calls")).content, found)
    t.same(read(calls(seoul, busan), finished("tool_calls")).content, found)
    const other = read(
      calls(seoul),
      calls(call(0, "", "go")),
      calls(call(0, "", undefined, '{"by":1}')),
      finished("stop"),
    )
    t.same(other.content, [found[0], tool("toolu_msg_1_1", "go", { by: 1 })])
    const pieces = read(calls(call(0, "", "look", '{"at":')), calls(call(0, "", "look", '"Seoul"}')), finished("stop"))
    t.same(pieces.content, [found[0]])
    t.same(read(calls(seoul), calls(call(0, "", "look", "")), finished("stop")).content, [found[0]])
  },
)

t.test("bug 43: a call without an id is given one", async t => {
  const { content } = read(calls(call(0, "", "look", "{}"), call(1, "", "look", "{}")), finished("tool_calls"))
  t.same(
    content.map(({ id }) => id),
    ["toolu_msg_1_0", "toolu_msg_1_1"],
  )
})

t.test("a name that comes in pieces, before or after its id, or again and again, is one name", async t => {
  const pieces = [
    calls(call(0, "a")),
    calls(call(0, undefined, "lo")),
    calls(call(0, undefined, "ok")),
    calls(call(0, undefined, "", "{}")),
  ]
  const again = [calls(call(0, "a", "look", "")), calls(call(0, "a", "look", "{")), calls(call(0, "a", "look", "}"))]
  for (const chunks of [pieces, again]) t.same(read(...chunks, finished("tool_calls")).content, [tool("a", "look")])
})

t.test("ids that change with every fragment of one call are one call: only the first fragment is named", async t => {
  const chunks = [calls(call(0, "a", "look", "")), calls(call(0, "b", undefined, "{")), calls(call(0, "c", "", "}"))]
  t.same(read(...chunks, finished("tool_calls")).content, [tool("a", "look")])
})

t.test("bug 39: a call that wraps others is passed on as the model wrote it", async t => {
  const input = { tool_uses: [{ recipient_name: "functions.look", parameters: { at: 1 } }] }
  const { content } = read(calls(call(0, "a", "parallel", JSON.stringify(input))), finished("tool_calls"))
  t.same(content, [tool("a", "parallel", input)])
})

t.test("content in parts loses neither text nor thoughts", async t => {
  const thinking = { type: "thinking", thinking: [{ type: "text", text: "Hm." }] }
  const hello = { type: "text", text: "Hello" }
  const blocks = [
    { type: "thinking", thinking: "Hm.", signature: "" },
    { ...hello, text: "Hello there" },
  ]
  const chunks = [chunk({ content: [thinking] }), chunk({ content: [hello] }), chunk({ content: " there" })]
  t.same(read(...chunks, finished("stop")).content, blocks)
  t.same(whole({ content: [thinking, hello, { type: "text", text: " there" }] }).content, blocks)
})

t.test("bugs 22 and 46: the last usage wins, wherever it stands", async t => {
  const late = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } }
  const chunks = [
    chunk({ content: "x" }),
    finished("stop", { prompt_tokens: 10, completion_tokens: 3 }),
    { choices: [], usage: late },
  ]
  const moderated = { choices: [], usage: null, moderation: {} }
  t.match(read(...chunks, moderated).usage, { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 5 })
})

t.test("bugs 23 and 24: usage in every chunk is not added up, and may come before the reason to stop", async t => {
  const usage = (completion_tokens: number) => ({ usage: { prompt_tokens: 10, completion_tokens } })
  const { usage: told } = read(
    chunk({ content: "a" }, null, usage(1)),
    chunk({ content: "b" }, null, usage(2)),
    finished("stop"),
  )
  t.match(told, { input_tokens: 10, output_tokens: 2 })
})

t.test("bugs 34 and 36: the message begins once, also when the first chunk holds no choice", async t => {
  const role = chunk({ role: "assistant", content: "" })
  const { content } = read(
    { choices: [], prompt_filter_results: [] },
    role,
    chunk({ content: "Hi" }),
    role,
    finished("stop"),
  )
  t.same(content, [{ type: "text", text: "Hi" }])
})

t.test("an answer that is cut or fails is an error, with or without content", async t => {
  const error = { code: "upstream_unavailable" }
  t.throws(() => read(), error)
  t.throws(() => read(chunk({ content: "Hel" })), error)
  t.throws(() => read(chunk({ content: "Hel" }), { error: { message: "Broken" }, choices: [], usage: {} }), error)
})

// ---- recorded, and any ----

t.test("recorded streams of many vendors keep the wire's rules and say what they say in chat", async t => {
  let seen = 0
  for (const vendor of [
    "openai-chat",
    "openai-compatible",
    "xai-chat",
    "groq",
    "deepseek",
    "mistral",
    "alibaba",
    "moonshot",
  ]) {
    for (const name of recordedFiles(vendor)) {
      for (const { body, streamed } of recorded(vendor, name)) {
        const chunks = streamed
          ? eventsOf(body)
              .filter(({ data }) => data[0] === 0x7b)
              .map(({ data }) => JSON.parse(data.toString()))
          : []
        const choices = chunks.flatMap(({ choices = [] }) => choices.slice(0, 1))
        if (!choices.some(({ finish_reason }) => finish_reason) || chunks.some(({ error }) => error)) continue
        seen++
        const { content } = read(...chunks)
        const texts = content.map(block => block.text ?? "").join("")
        t.equal(
          texts,
          choices.map(({ delta }) => (typeof delta?.content === "string" ? delta.content : "")).join(""),
          name,
        )
      }
    }
  }
  t.ok(seen > 10, `${seen} streams`)
})

const inputs = fc.dictionary(
  fc.string({ maxLength: 4 }).filter(key => key !== "__proto__"),
  fc.jsonValue({ maxDepth: 1 }),
  { maxKeys: 3 },
)
const answers = fc.record({
  reasoning: fc.string({ maxLength: 8 }),
  content: fc.string({ maxLength: 8 }),
  inputs: fc.array(inputs, { maxLength: 3 }),
  cuts: fc.infiniteStream(fc.integer({ min: 1, max: 5 })),
  order: fc.infiniteStream(fc.nat()),
})

t.test("any answer, its calls interleaved in any way, is the same message whole and streamed", async () => {
  fc.assert(
    fc.property(answers, ({ reasoning, content, inputs, cuts, order }) => {
      const pieces = (text: string): string[] => {
        const cut: string[] = []
        for (let rest = text; rest !== ""; ) {
          const size = cuts.next().value as number
          cut.push(rest.slice(0, size))
          rest = rest.slice(size)
        }
        return cut
      }
      const waiting = inputs.map((input, at) => [
        call(at, `c${at}`, `tool${at}`, ""),
        ...pieces(JSON.stringify(input)).map(part => call(at, undefined, undefined, part)),
      ])
      const fragments: JsonObject[] = waiting.map(queue => queue.shift()!)
      while (waiting.some(queue => queue.length > 0)) {
        const open = waiting.filter(queue => queue.length > 0)
        fragments.push(open[(order.next().value as number) % open.length]!.shift()!)
      }
      const streamed = read(
        ...pieces(reasoning).map(part => chunk({ reasoning_content: part })),
        ...pieces(content).map(part => chunk({ content: part })),
        ...fragments.map(fragment => calls(fragment)),
        finished("stop"),
      )
      const tool_calls = inputs.map((input, at) => call(at, `c${at}`, `tool${at}`, JSON.stringify(input)))
      const wanted = whole({ content, reasoning_content: reasoning, tool_calls })
      const [one, other] = [streamed, wanted].map(({ content, stop_reason }) => JSON.stringify([content, stop_reason]))
      if (one !== other) throw new Error(`${one} is not ${other}`)
    }),
    { numRuns: 300 },
  )
})
