/** Answers of the generate-content wire as chat completions: every recorded one, whole and streamed, and the odd ones. */
import t from "tap"
import {
  assembled,
  candidate,
  chat,
  chunksOf,
  contextOf,
  type Message,
  streamOf,
  whole,
} from "../fixtures/google-chat.ts"
import { eventsOf } from "../fixtures/metering.ts"
import { type Answer, recorded, recordedFiles } from "../fixtures/recorded.ts"

// ---- what the vendor's own shape says, read as plainly as possible ----

interface Part {
  readonly text?: string
  readonly thought?: boolean
  readonly thoughtSignature?: string
  readonly functionCall?: { readonly name?: string; readonly args?: unknown }
}
interface VendorAnswer {
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly Part[] }
    readonly finishReason?: string
  }[]
  readonly usageMetadata?: Readonly<Record<string, number>>
}

const generated = recordedFiles("google")
  .flatMap(name => recorded("google", name).map((answer, at) => ({ name: `${name} (${at + 1})`, answer })))
  .filter(({ answer }) => answer.body.includes('"candidates"'))

const vendorAnswers = ({ streamed, body }: Answer): readonly VendorAnswer[] =>
  streamed
    ? eventsOf(body).map(({ data }) => JSON.parse(data.toString()) as VendorAnswer)
    : [JSON.parse(body.toString()) as VendorAnswer]

const expectedOf = (answer: Answer) => {
  const answers = vendorAnswers(answer)
  const candidates = answers.flatMap(one => one.candidates ?? [])
  const parts = candidates.flatMap(one => one.content?.parts ?? [])
  const named = parts.flatMap(part => (part.functionCall?.name === undefined ? [] : [part]))
  const reason = candidates.findLast(one => one.finishReason !== undefined)?.finishReason
  const usage = answers.at(-1)?.usageMetadata ?? {}
  const { promptTokenCount = 0, candidatesTokenCount = 0, thoughtsTokenCount = 0, totalTokenCount } = usage
  return {
    text: parts
      .filter(part => part.thought !== true)
      .map(part => part.text ?? "")
      .join(""),
    calls: named.map(part => part.functionCall?.name),
    args: named.map(part => part.functionCall?.args),
    signatures: named.map(part => part.thoughtSignature),
    reason:
      named.length > 0 ? "tool_calls" : { STOP: "stop", MAX_TOKENS: "length", SAFETY: "content_filter" }[reason ?? ""],
    usage: {
      prompt_tokens: promptTokenCount,
      completion_tokens: candidatesTokenCount + thoughtsTokenCount,
      total_tokens: totalTokenCount,
      completion_tokens_details: { reasoning_tokens: thoughtsTokenCount },
    },
  }
}

const parsed = (calls: Message["tool_calls"] = []) => calls.map(call => JSON.parse(call.function.arguments))

t.test("every recorded answer says, calls, ends and counts what the vendor's own shape does", async t => {
  t.ok(generated.length >= 14, "the recordings are there")
  for (const { name, answer } of generated) {
    const expected = expectedOf(answer)
    if (!answer.streamed) {
      const { choices, usage } = whole(answer.body)
      const [{ message, finish_reason } = t.fail(name) as never] = choices
      t.equal(message.content ?? "", expected.text, name)
      t.same(message.tool_calls?.map(call => call.function.name) ?? [], expected.calls, name)
      t.same(parsed(message.tool_calls), expected.args, name)
      t.equal(finish_reason, expected.reason, name)
      t.match(usage, expected.usage, name)
      continue
    }
    for (const size of [1, 7, answer.body.length]) {
      const { choices, usage } = assembled(chunksOf(answer.body, {}, size))
      const [choice] = choices
      t.equal(choices.length, 1, name)
      t.equal(choice?.text, expected.text, name)
      t.same(
        choice?.calls.map(call => call.function.name),
        expected.calls,
        name,
      )
      if (expected.args.every(args => args !== undefined)) t.same(parsed(choice?.calls), expected.args, name)
      t.same(choice?.reasons, [expected.reason], `${name}: once`)
      t.match(usage, expected.usage, name)
    }
  }
})

t.test("a stream and its whole twin are the same completion", async t => {
  for (const { name, answer } of generated.filter(one => !one.answer.streamed)) {
    const { choices, usage } = whole(answer.body)
    const streamed = assembled(chunksOf(streamOf(JSON.parse(answer.body.toString()))))
    t.equal(streamed.choices[0]?.text, choices[0]?.message.content ?? "", name)
    t.equal(streamed.choices[0]?.refusal, choices[0]?.message.refusal ?? "", name)
    t.same(streamed.choices[0]?.reasons, [choices[0]?.finish_reason], name)
    t.same(streamed.usage, usage, name)
  }
})

t.test("arguments that stream piece by piece arrive as one text for each call", async t => {
  const [weather] = recorded("google", "google-stream-tool-call-arguments.chunks.txt")
  const cities = assembled(chunksOf(weather?.body ?? Buffer.alloc(0))).choices[0]?.calls ?? []
  t.same(parsed(cities), [{ location: "Boston" }, { location: "San Francisco" }])
  t.not(cities[0]?.id, cities[1]?.id)
  const [recipe] = recorded("google", "google-vertex-stream-tool-call-arguments-nested.1.chunks.txt")
  const [args] = parsed(assembled(chunksOf(recipe?.body ?? Buffer.alloc(0))).choices[0]?.calls)
  t.match(args, { recipe: { ingredients: [{ amount: "16 oz", name: "Lasagna noodles" }], steps: [/^./] } })
  t.equal(args.recipe.steps.at(-1), "Let stand for 15 minutes before serving.")
})

// ---- the shape ----

t.test("all chunks bear one id and the catalog's name; usage comes last and only when it is asked for", async t => {
  const [answer] = recorded("google", "google-text.chunks.txt")
  const body = answer?.body ?? Buffer.alloc(0)
  const chunks = chunksOf(body)
  t.same(
    new Set(chunks.map(({ id, object, model }) => `${id} ${object} ${model}`)),
    new Set(["chatcmpl-1 chat.completion.chunk our-model"]),
  )
  t.same(chunks[0]?.choices, [
    { index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null },
  ])
  t.same(chunks.at(-1)?.choices, [])
  t.ok(chunks.slice(0, -1).every(({ usage }) => usage === null))
  const without = chunksOf(body, { includeUsage: false })
  t.equal(without.length, chunks.length - 1)
  t.notOk(without.some(chunk => "usage" in chunk))
  t.match(whole(candidate([{ text: "a" }], "STOP")), {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 7,
    model: "our-model",
    choices: [{ index: 0, message: { role: "assistant", content: "a", refusal: null }, logprobs: null }],
  })
})

t.test("usage tells cached, tool, sound and thought tokens as the hub counts them", async t => {
  const usageMetadata = {
    promptTokenCount: 100,
    cachedContentTokenCount: 60,
    toolUsePromptTokenCount: 5,
    candidatesTokenCount: 7,
    thoughtsTokenCount: 3,
    totalTokenCount: 115,
  }
  t.same(whole(candidate([{ text: "a" }], "STOP", { usageMetadata })).usage, {
    prompt_tokens: 105,
    completion_tokens: 10,
    total_tokens: 115,
    prompt_tokens_details: { cached_tokens: 60, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 3, audio_tokens: 0 },
  })
  t.notOk("usage" in whole(candidate([{ text: "a" }], "STOP", { usageMetadata: { trafficType: "ON_DEMAND" } })))
})

t.test("parts become deltas in their order, thoughts and images in their own fields", async t => {
  const parts = [
    { text: "hm", thought: true },
    { text: "a" },
    { functionCall: { name: "f", args: { x: 1 } } },
    { text: "b" },
    { inlineData: { mimeType: "image/png", data: "AAAA" } },
    { executableCode: { code: "1" } },
  ]
  const images = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]
  const [{ message } = t.fail() as never] = whole(candidate(parts, "STOP")).choices
  t.match(message, { content: "ab", reasoning_content: "hm", images, tool_calls: [{ function: { name: "f" } }] })
  const deltas = chunksOf(streamOf(candidate(parts, "STOP"))).flatMap(({ choices }) => choices.map(one => one.delta))
  t.match(deltas, [
    { role: "assistant" },
    { reasoning_content: "hm" },
    { content: "a" },
    { tool_calls: [{ index: 0, type: "function", function: { name: "f", arguments: '{"x":1}' } }] },
    { content: "b" },
    { images },
    {},
  ])
  t.equal(deltas.length, 7)
})

t.test("several candidates are several choices, each with its own reason and its own tools", async t => {
  const one = (index: number, parts: readonly object[], finishReason?: string) => ({
    index,
    content: { parts },
    ...(finishReason === undefined ? {} : { finishReason }),
  })
  const call = { functionCall: { name: "f" } }
  const both = { candidates: [one(0, [{ text: "a" }], "MAX_TOKENS"), one(1, [call], "STOP")] }
  t.match(whole(both).choices, [
    { index: 0, message: { content: "a" }, finish_reason: "length" },
    { index: 1, message: { content: null, tool_calls: [{}] }, finish_reason: "tool_calls" },
  ])
  const chunks = streamOf({ candidates: [one(0, [{ text: "a" }])] }, { candidates: [one(1, [call])] }, both)
  t.match(assembled(chunksOf(chunks)).choices, [
    { text: "aa", reasons: ["length"] },
    { calls: [{}, {}], reasons: ["tool_calls"] },
  ])
})

t.test("log probabilities are told token by token", async t => {
  const logprobsResult = {
    chosenCandidates: [{ token: "é", tokenId: 5, logProbability: -0.5 }],
    topCandidates: [
      {
        candidates: [
          { token: "é", logProbability: -0.5 },
          { token: "e", logProbability: -2 },
        ],
      },
    ],
  }
  const answer = { candidates: [{ content: { parts: [{ text: "é" }] }, finishReason: "STOP", logprobsResult }] }
  const token = { token: "é", logprob: -0.5, bytes: [0xc3, 0xa9] }
  const expected = {
    content: [{ ...token, top_logprobs: [token, { token: "e", logprob: -2, bytes: [0x65] }] }],
    refusal: null,
  }
  t.same(whole(answer).choices[0]?.logprobs, expected)
  t.same(
    chunksOf(streamOf(answer))
      .flatMap(({ choices }) => choices)
      .find(one => one.logprobs !== null)?.logprobs,
    expected,
  )
})

// ---- tool calls ----

t.test("the vendor's ids are used; where there is none, each call gets its own", async t => {
  const parts = [{ id: "theirs", name: "f" }, { name: "f" }, { name: "f", id: "" }].map(functionCall => ({
    functionCall,
  }))
  const calls = whole(candidate(parts, "STOP")).choices[0]?.message.tool_calls ?? []
  t.equal(calls[0]?.id, "theirs")
  for (const call of calls.slice(1)) t.match(call.id, /^call_[A-Za-z0-9_-]{24}$/)
  t.equal(new Set(calls.map(call => call.id)).size, 3)
  t.same(
    calls.map(call => call.function.arguments),
    ["{}", "{}", "{}"],
  )
})

t.test("bugs 31 and 35: tool indexes count from 0 over the whole stream", async t => {
  const call = (name: string) => candidate([{ functionCall: { name, args: {} } }])
  const chunks = chunksOf(streamOf(candidate([{ text: "a" }]), call("f"), call("g"), candidate([{ text: "" }], "STOP")))
  const indexes = chunks.flatMap(({ choices }) =>
    choices.flatMap(one => one.delta.tool_calls?.map(({ index }) => index) ?? []),
  )
  t.same(indexes, [0, 1])
})

t.test("bug 12: signatures are kept by call id, and written beside the call", async t => {
  const signature = "ab+/cd=="
  const parts = [
    { functionCall: { name: "f", args: {} }, thoughtSignature: signature },
    { functionCall: { name: "g" } },
  ]
  for (const read of [whole, (one: unknown, given: object) => assembled(chunksOf(streamOf(one), given))] as const) {
    const kept = new Map<string, string>()
    const answer = read(candidate(parts, "STOP"), { keep: (id: string, value: string) => kept.set(id, value) })
    const [choice] = answer.choices as readonly { message?: Message; calls?: Message["tool_calls"] }[]
    const [first, second] = choice?.message?.tool_calls ?? choice?.calls ?? []
    t.same(first?.extra_content, { google: { thought_signature: signature } })
    t.equal(second?.extra_content, undefined)
    t.same([...kept.keys()], [first?.id])
    const messages = [
      { role: "user", content: "q" },
      {
        role: "assistant",
        tool_calls: [{ id: first?.id, type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: first?.id, content: "" },
    ]
    const { body } = chat.request({ model: "our-model", messages }, contextOf({ signatures: kept }))
    t.match(body, { contents: [{}, { parts: [{ thoughtSignature: signature }] }] }, "the round trip")
  }
})

t.test("a name that the vendor does not take travels under an alias and comes back", async t => {
  const tools = ["1 tool/é", "1_tool__", "_1_tool__"].map(name => ({ type: "function", function: { name } }))
  const messages = [{ role: "user", content: "q" }]
  const { body, memo } = chat.request({ model: "our-model", messages, tools }, contextOf())
  const [{ functionDeclarations }] = body.tools as readonly [{ functionDeclarations: readonly { name: string }[] }]
  const names = functionDeclarations.map(({ name }) => name)
  t.equal(new Set(names).size, 3)
  for (const name of names) t.match(name, /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/)
  const called = candidate(
    names.map(name => ({ functionCall: { name } })),
    "STOP",
  )
  const wanted = ["1 tool/é", "1_tool__", "_1_tool__"]
  t.same(
    whole(called, {}, memo).choices[0]?.message.tool_calls?.map(call => call.function.name),
    wanted,
  )
  const [choice] = assembled(chunksOf(streamOf(called), {}, 7, memo)).choices
  t.same(
    choice?.calls.map(call => call.function.name),
    wanted,
  )
})

t.test("bug 10: a call of a nameless tool is the vendor's fault", async t => {
  for (const functionCall of [{ name: "", args: {} }, { args: { a: 1 } }]) {
    const answer = candidate([{ functionCall }], "STOP")
    t.throws(() => whole(answer), { code: "upstream_unavailable" })
    t.throws(() => chunksOf(streamOf(answer)), { code: "upstream_unavailable" })
  }
})

const partial = (...calls: readonly object[]): Buffer =>
  streamOf(...calls.map(functionCall => candidate([{ functionCall }])), candidate([], "STOP"))

t.test("pieces of arguments find their places, whatever their kind", async t => {
  const piece = (jsonPath: string, value: object, more = false) => ({
    jsonPath,
    ...value,
    ...(more ? { willContinue: true } : {}),
  })
  const body = partial(
    { name: "f", willContinue: true },
    { partialArgs: [piece("$.a.b[0]", { stringValue: "x" }, true)], willContinue: true },
    {
      partialArgs: [piece("$.a.b[0]", { stringValue: "y" }), piece("$.a.b[1]", { numberValue: 2 })],
      willContinue: true,
    },
    { partialArgs: [piece("$['c d']", { boolValue: false }), piece("$.n", { nullValue: null })], willContinue: true },
    { partialArgs: [piece("$.__proto__.p", { stringValue: "z" })], willContinue: true },
    {},
  )
  const [choice] = assembled(chunksOf(body)).choices
  t.equal(choice?.calls[0]?.function.arguments, '{"a":{"b":["xy",2]},"c d":false,"n":null,"__proto__":{"p":"z"}}')
  t.equal(({} as { p?: unknown }).p, undefined)
})

t.test("a call that is open when the answer ends, or another begins, is closed", async t => {
  const piece = { jsonPath: "$.a", stringValue: "x", willContinue: true }
  const open = { name: "f", partialArgs: [piece], willContinue: true }
  const [choice] = assembled(chunksOf(partial(open, { name: "g", args: { b: 1 } }, open))).choices
  t.same(parsed(choice?.calls), [{ a: "x" }, { b: 1 }, { a: "x" }])
})

t.test("paths that cannot be followed are the vendor's fault", async t => {
  const deep = `$${".a".repeat(65)}`
  for (const jsonPath of ["", "$", "a", "$.a[", "$.a[5]", "$[999999999]", "$.a..b", deep, undefined]) {
    const body = partial({ name: "f", willContinue: true }, { partialArgs: [{ jsonPath, stringValue: "x" }] })
    t.throws(() => chunksOf(body), { code: "upstream_unavailable" }, String(jsonPath))
  }
})

// ---- how answers end ----

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
    t.match(
      { message, finish_reason },
      { message: { content: null, refusal: `${reason}. Because.` }, finish_reason: word },
    )
    t.match(streamed, { refusal: message.refusal, reasons: [word] }, reason)
    t.match(endOf(candidate([{ text: "a" }], reason)), {
      message: { content: "a", refusal: null },
      finish_reason: word,
      streamed: { text: "a", refusal: "", reasons: [word] },
    })
  }
})

t.test("an answer of nothing is never a silent success", async t => {
  const empty = { message: { content: null, refusal: "The model ended without an answer." }, finish_reason: "stop" }
  t.match(endOf(candidate([], "STOP")), { ...empty, streamed: { refusal: empty.message.refusal, reasons: ["stop"] } })
  t.match(endOf(candidate([{ text: "" }], "STOP")), empty)
  t.match(endOf(candidate([{ text: "hm", thought: true }], "STOP")), empty)
  t.match(endOf(candidate([], "MAX_TOKENS")), { message: { content: "", refusal: null }, finish_reason: "length" })
  for (const answer of [{}, { candidates: [] }, { usageMetadata: { promptTokenCount: 1 } }]) {
    t.throws(() => whole(answer), { code: "upstream_unavailable" })
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
  t.throws(() => chunksOf(streamOf(candidate([{ text: "a" }]))), cut)
  t.throws(() => chunksOf(Buffer.alloc(0)), cut)
  const whole = streamOf(candidate([{ text: "a" }]), candidate([{ text: "b" }], "STOP"))
  for (let size = 0; size < whole.length - 4; size += 5)
    t.throws(() => chunksOf(whole.subarray(0, size)), cut, `${size} bytes`)
  const second = { candidates: [{ index: 1, content: { parts: [{ text: "c" }] } }] }
  t.throws(() => chunksOf(streamOf(candidate([{ text: "a" }], "STOP"), second)), cut, "one of two choices")
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
    t.throws(() => whole(Buffer.from(body)), { code: "upstream_unavailable" }, body)
    t.throws(() => chunksOf(Buffer.from(`data: ${body}\r\n\r\n`)), { code: "upstream_unavailable" }, body)
  }
  const odd = { candidates: [null, { content: { parts: [null, 3, { text: 5 }] }, index: -1, finishReason: "STOP" }] }
  t.match(whole(odd).choices, [{ index: 0 }, { index: 1, finish_reason: "stop" }])
})

t.test("an end marker of another wire does no harm", async t => {
  const body = Buffer.concat([streamOf(candidate([{ text: "a" }], "STOP")), Buffer.from("data: [DONE]\n\n")])
  t.equal(assembled(chunksOf(body)).choices[0]?.text, "a")
})
