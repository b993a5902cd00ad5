/** Words and counts of the Messages wire in those of chat completions: the same for whole answers and streams. */

import { unreadable } from "../../../../core/index.ts"
import { Surprises } from "../../common/counts.ts"
import { type JsonObject, text } from "../../common/json.ts"
import { tokensOf } from "../usage.ts"

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

const finishReasons: Readonly<Record<string, FinishReason>> = {
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content_filter",
}

/** An answer with tool calls ends with them, whatever word it ends with; a cut or refused one says so. */
export const finishReason = (stopReason: unknown, hasCalls: boolean): FinishReason => {
  const reason = text(stopReason) ?? ""
  const special = Object.hasOwn(finishReasons, reason) ? finishReasons[reason] : undefined
  return special ?? (hasCalls ? "tool_calls" : "stop")
}

/** Why the model refused, when it did and says so. */
export const refusalOf = (stopReason: unknown, details: JsonObject): string | null =>
  stopReason === "refusal" ? (text(details.explanation) ?? null) : null

/** The usage as it is billed: chat counts the cache inside the prompt, this vendor beside it. */
export const chatUsage = (reported: JsonObject): JsonObject => {
  const usage = tokensOf(reported, new Surprises()) ?? {}
  const { input = 0, output = 0, reasoning = 0, cache_read = 0 } = usage
  const written = (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0)
  const prompt = input + cache_read + written
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cache_read, cache_write_tokens: written },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

/**
 * The client's name of a tool that the model calls.
 *
 * @throws GatewayError `upstream_unreadable` (502): a call of nothing cannot be passed on
 */
export const toolName = (name: unknown, names: ReadonlyMap<string, string>): string => {
  const sent = text(name)
  if (sent === undefined) throw unreadable("The model called a tool without a name")
  return names.get(sent) ?? sent
}
