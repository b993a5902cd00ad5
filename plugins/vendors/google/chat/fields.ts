/** What becomes of each top-level field of a chat request on this wire: an unknown name would be a 400 of the vendor. */

import type { KnownFields } from "../../common/chat-fields.ts"

const taken = new Set([
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

const hints = new Set([
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

/** What this wire does with each. */
export const fields: KnownFields = {
  taken,
  hints,
}
