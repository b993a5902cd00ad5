/** What becomes of each top-level field of a chat request on this wire. */

import type { KnownFields } from "../../common/chat-fields.ts"

const taken = new Set([
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

const hints = new Set([
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

/** What this wire does with each. */
export const fields: KnownFields = {
  taken,
  hints,
  neutral: {
    n: value => value === 1,
    frequency_penalty: value => value === 0,
    presence_penalty: value => value === 0,
    logprobs: value => value === false,
    top_logprobs: value => value === 0,
  },
}
