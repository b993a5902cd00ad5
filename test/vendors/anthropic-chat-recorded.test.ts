/** Every recorded answer of the Messages wire, as a chat client reads it: nothing lost, nothing added. */
import t from "tap"
import { bytesAsEvents, contextFor, putTogether, spoke, streamedAnswer, wholeOf } from "../fixtures/anthropic-chat.ts"
import { type Answer, recorded, recordedFiles } from "../fixtures/recorded.ts"

interface Block {
  readonly type: string
  readonly text?: string
  readonly thinking?: string
  readonly id?: string
  readonly name?: string
  readonly input?: unknown
}

interface Counts {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly output_tokens_details?: { readonly thinking_tokens?: number }
  readonly iterations?: readonly (Counts & { readonly type: string })[]
}

interface Message {
  content: Block[]
  stop_reason: string
  stop_details?: { readonly explanation?: string } | null
  usage: Counts
}

/** The vendor's own reading of a stream, written from its documentation and not from the code under test. */
const messageFrom = (body: Buffer): Message => {
  const message: Message = { content: [], stop_reason: "", usage: {} }
  const inputs: string[] = []
  for (const line of body
    .toString()
    .split("\n")
    .filter(line => line.startsWith("data:"))) {
    const event = JSON.parse(line.slice(5))
    if (event.type === "message_start") message.usage = { ...message.usage, ...event.message.usage }
    if (event.type === "content_block_start") message.content[event.index] = { ...event.content_block }
    if (event.type === "content_block_delta") addDelta(message.content, inputs, event.index, event.delta)
    if (event.type === "message_delta") {
      Object.assign(message, event.delta)
      message.usage = { ...message.usage, ...event.usage }
    }
  }
  message.content = message.content.map((block, at) => ({
    ...block,
    ...(inputs[at] ? { input: JSON.parse(inputs[at]) } : {}),
  }))
  return message
}

const addDelta = (
  content: Block[],
  inputs: string[],
  at: number,
  delta: { readonly text?: string; readonly thinking?: string; readonly partial_json?: string },
): void => {
  const block = content[at]!
  if (delta.text !== undefined) content[at] = { ...block, text: (block.text ?? "") + delta.text }
  if (delta.thinking !== undefined) content[at] = { ...block, thinking: (block.thinking ?? "") + delta.thinking }
  if (delta.partial_json !== undefined) inputs[at] = (inputs[at] ?? "") + delta.partial_json
}

const finishWords: Readonly<Record<string, string>> = {
  end_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  refusal: "content_filter",
}

const promptOf = (counts: Counts): number =>
  (counts.input_tokens ?? 0) + (counts.cache_read_input_tokens ?? 0) + (counts.cache_creation_input_tokens ?? 0)

/** What the client must find; arguments as values, because a stream keeps the vendor's spaces. */
const expected = ({ content, stop_reason, stop_details, usage }: Message) => {
  const beside = (usage.iterations ?? []).filter(({ type }) => type === "compaction" || type === "advisor_message")
  const prompt = [usage, ...beside].reduce((sum, counts) => sum + promptOf(counts), 0)
  const output = [usage, ...beside].reduce((sum, counts) => sum + (counts.output_tokens ?? 0), 0)
  const written = usage.cache_creation_input_tokens ?? 0
  return {
    content: content.map(({ type, text }) => (type === "text" ? text : "")).join(""),
    reasoning: content.map(({ type, thinking }) => (type === "thinking" ? thinking : "")).join(""),
    refusal: stop_details?.explanation ?? null,
    calls: content
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input }) => ({ id, name, arguments: input ?? {} })),
    finish: finishWords[stop_reason],
    usage: {
      prompt_tokens: prompt,
      completion_tokens: output,
      total_tokens: prompt + output,
      prompt_tokens_details: { cached_tokens: usage.cache_read_input_tokens ?? 0, cache_write_tokens: written },
      completion_tokens_details: { reasoning_tokens: usage.output_tokens_details?.thinking_tokens ?? 0 },
    },
  }
}

const parsedCalls = (answer: ReturnType<typeof putTogether>) => ({
  ...answer,
  calls: answer.calls.map(call => ({ ...call, arguments: JSON.parse(call.arguments) })),
})

const isMessage = (answer: Answer): boolean => answer.streamed || JSON.parse(answer.body.toString()).type === "message"

const files = recordedFiles("anthropic")

t.test("whole answers say in chat what they say in the vendor's own shape", async t => {
  const answers = files.flatMap(name => recorded("anthropic", name).map(answer => ({ name, answer })))
  const wholes = answers.filter(({ answer }) => !answer.streamed && isMessage(answer))
  t.ok(wholes.length > 20)
  for (const { name, answer } of wholes) {
    const message = JSON.parse(answer.body.toString()) as Message
    t.same(parsedCalls(wholeOf(message)), expected(message), name)
  }
})

t.test("streams say the same, however their bytes are cut", async t => {
  const answers = files.flatMap(name => recorded("anthropic", name).map(answer => ({ name, answer })))
  const streams = answers.filter(({ answer }) => answer.streamed)
  t.ok(streams.length > 15)
  for (const { name, answer } of streams) {
    const wanted = expected(messageFrom(answer.body))
    const whole = streamedAnswer(bytesAsEvents(answer.body))
    t.same(parsedCalls(putTogether(whole)), wanted, name)
    for (const size of [1, 7]) t.same(streamedAnswer(bytesAsEvents(answer.body, size)), whole, `${name} by ${size}`)
  }
})

t.test("a stream has one beginning, one end, and the same head in every chunk", async t => {
  for (const name of files) {
    for (const answer of recorded("anthropic", name).filter(({ streamed }) => streamed)) {
      const chunks = streamedAnswer(bytesAsEvents(answer.body))
      const choices = chunks.flatMap(({ choices }) => choices as readonly Record<string, unknown>[])
      const roles = choices.filter(({ delta }) => (delta as Record<string, unknown>).role !== undefined)
      t.same([roles.length, roles[0]], [1, choices[0]], name)
      t.equal(choices.filter(({ finish_reason }) => finish_reason !== null).length, 1)
      t.ok(
        chunks.every(
          ({ id, created, model }) => id === "chatcmpl-1" && created === 1_700_000_000 && model === "some-model",
        ),
      )
      t.same(
        chunks.filter(({ usage }) => usage !== null),
        [chunks.at(-1)],
        "usage comes once, last",
      )
    }
  }
})

t.test("a stream without its last event is an error wherever it is cut, never a finished answer", async t => {
  const [answer] = recorded("anthropic", "anthropic-tool-no-args.chunks.txt")
  const events = bytesAsEvents(answer!.body)
  for (let length = 0; length < events.length; length++) {
    const stream = spoke.stream!(contextFor(), { names: new Map() })
    const chunks = events.slice(0, length).flatMap(event => stream.push(event))
    t.notOk(chunks.some(chunk => (chunk.choices as { finish_reason: unknown }[])[0]?.finish_reason !== null))
    t.throws(() => stream.end(), { code: "upstream_unavailable" }, `after ${length} events`)
  }
})
