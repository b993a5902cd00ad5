/** Usage as the hub reports it, from the same counts by which the answer is billed. */

import type { JsonObject } from "../../../../core/index.ts"
import { count, Surprises } from "../../common/counts.ts"
import { record } from "../../common/json.ts"
import { tokensOf } from "../usage.ts"

/** `undefined` when the vendor reported none. */
export const usageOf = (usageMetadata: unknown): JsonObject | undefined => {
  const surprises = new Surprises() // counted by the meter, which reads the same bytes
  const tokens = tokensOf(usageMetadata, surprises)
  if (tokens === undefined) return undefined
  const { input = 0, cache_read = 0, audio_input = 0, output = 0, audio_output = 0, image_output = 0 } = tokens
  const prompt = input + cache_read + audio_input
  const completion = output + audio_output + image_output
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: count(record(usageMetadata).totalTokenCount, surprises) ?? prompt + completion,
    prompt_tokens_details: { cached_tokens: cache_read, audio_tokens: audio_input },
    completion_tokens_details: { reasoning_tokens: tokens.reasoning ?? 0, audio_tokens: audio_output },
  }
}
