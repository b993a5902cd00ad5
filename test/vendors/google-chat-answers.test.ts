/** Answers of the generate-content wire as chat completions: every recorded one, whole and streamed, and the odd ones. */
import t from "tap"
import { assembled, candidate, chunksOf, parsed, streamOf, whole } from "../fixtures/google-chat.ts"
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
