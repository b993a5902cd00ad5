/** What becomes of each top-level field of a chat request on this wire. */

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
  "temperature",
  "top_p",
  "top_k",
  "user",
  "safety_identifier",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "response_format",
  "reasoning_effort",
  "thinking",
  "cache_control",
])

/** Hints about storing, caching, speed and style: an answer without them still is the answer to the request. */
const hints: ReadonlySet<string> = new Set([
  "store",
  "metadata",
  "service_tier",
  "prediction",
  "verbosity",
  "seed",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
])

const isEmpty = (value: unknown): boolean => typeof value === "object" && Object.keys(value as object).length === 0

/** Values of fields without a counterpart that ask for nothing: what happens anyway. */
const neutral: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: value => value === 1,
  frequency_penalty: value => value === 0,
  presence_penalty: value => value === 0,
  logprobs: value => value === false,
  top_logprobs: value => value === 0,
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
