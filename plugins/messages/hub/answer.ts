/** Words and counts of chat in those of the Messages wire: the same for whole answers and streams. */

import { countedOutput, type JsonObject, list, record, text, unreadable } from "../../../core/index.ts"

export const stopSequence = "stop_sequence"
const stopReasons: Readonly<Record<string, string>> = { length: "max_tokens", content_filter: "refusal" }

interface Seen {
  /** The stop sequence that was found here. */
  readonly matched: string | undefined
  readonly hasCalls: boolean
  readonly hasRefusal: boolean
}

/** An answer with tool calls ends with them, whatever word it ends with: clients look at nothing else. */
export const stopReason = (finish: unknown, { matched, hasCalls, hasRefusal }: Seen): string => {
  if (hasCalls) return "tool_use"
  if (matched !== undefined) return stopSequence
  if (hasRefusal) return "refusal"
  const reason = text(finish) ?? ""
  return (Object.hasOwn(stopReasons, reason) ? stopReasons[reason] : undefined) ?? "end_turn"
}

const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0)

/** Chat counts the cache inside the prompt, this wire beside it. */
export const messageUsage = (usage: JsonObject): JsonObject => {
  const details = record(usage.prompt_tokens_details)
  const prompt = count(usage.prompt_tokens)
  // Moonshot's and DeepSeek's names for the same.
  const cached = details.cached_tokens ?? usage.cached_tokens ?? usage.prompt_cache_hit_tokens
  const read = Math.min(count(cached), prompt)
  const written = Math.min(count(details.cache_write_tokens), prompt - read)
  return {
    input_tokens: prompt - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: outputOf(usage, prompt),
  }
}

/** What the client is told: the vendor's counts, else those that the call is billed by. */
export const usageOf = (reported: JsonObject, estimatedInput: number, outputBytes: number): JsonObject => {
  const isTold = count(reported.prompt_tokens) > 0 || count(reported.completion_tokens) > 0
  if (isTold) return messageUsage(reported)
  return messageUsage({ prompt_tokens: estimatedInput, completion_tokens: countedOutput(outputBytes) })
}

/** UTF-8 bytes of all that a message or a delta says. */
export const bytesOf = (said: JsonObject): number => {
  const calls = list(said.tool_calls).map(call => text(record(record(call).function).arguments))
  const told = [wordsOf(said.content), text(said.refusal), reasoningOf(said), ...calls]
  return told.reduce((sum, words) => sum + Buffer.byteLength(words ?? ""), 0)
}

/** Some vendors count reasoning beside the completion: it shows in the total, and is billed. */
const outputOf = (usage: JsonObject, prompt: number): number => {
  const completion = count(usage.completion_tokens)
  const reasoning = count(record(usage.completion_tokens_details).reasoning_tokens)
  const beside = count(usage.total_tokens) - prompt - completion
  return beside > 0 && (reasoning === 0 || reasoning === beside) ? completion + beside : completion
}

/** Vendors disagree about the field's name; Mistral writes thoughts as parts of the content. */
export const reasoningOf = (said: JsonObject): string | undefined =>
  text(said.reasoning_content) ?? text(said.reasoning) ?? joined(said.content, ({ thinking }) => wordsOf(thinking))

/** One text, or the texts of a list of parts; `undefined` when nothing is said. */
export const wordsOf = (content: unknown): string | undefined =>
  text(content) ?? joined(content, part => text(part.text))

const joined = (parts: unknown, read: (part: JsonObject) => string | undefined): string | undefined =>
  text(
    list(parts)
      .map(part => read(record(part)) ?? "")
      .join(""),
  )

/** @throws GatewayError `upstream_unreadable` (502): a call of nothing cannot be passed on */
export const toolName = (name: unknown): string => {
  const told = text(name)
  if (told === undefined) throw unreadable("The model called a tool without a name")
  return told
}
