/** What becomes of each top-level field of a chat request on this wire: an unknown name would be a 400 of the vendor. */

import { type ChatRequest, isSet, refuse } from "../../../../core/index.ts"

/** Translated, each by its own piece. */
const taken: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "stop",
  "n",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "logprobs",
  "top_logprobs",
  "tools",
  "tool_choice",
  "response_format",
  "reasoning_effort",
  "thinking_level",
  "thinking_budget",
])

/** Hints about storing, caching, speed and style: an answer without them still is the answer to the request. */
const hints: ReadonlySet<string> = new Set([
  "store",
  "metadata",
  "service_tier",
  "prediction",
  "verbosity",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  // No counterpart: the vendor calls as many tools as it likes.
  "parallel_tool_calls",
])

const isEmpty = (value: unknown): boolean => typeof value === "object" && Object.keys(value as object).length === 0

/** Values of fields without a counterpart that ask for nothing: what happens anyway. */
const neutral: Readonly<Record<string, (value: unknown) => boolean>> = {
  logit_bias: isEmpty,
  functions: isEmpty,
  modalities: value => Array.isArray(value) && value.every(one => one === "text"),
}

/** @throws GatewayError `invalid_request` (400) naming the first field that this wire cannot express */
export const checkFields = (request: ChatRequest): void => {
  for (const [name, value] of Object.entries(request)) {
    if (!isSet(value) || taken.has(name) || hints.has(name)) continue
    if (Object.hasOwn(neutral, name) && neutral[name]?.(value)) continue
    throw refuse(name, `Model '${request.model}' does not support '${name}'`)
  }
}
