/** Token counts of the OpenAI wires, in the names of both chat completions and Responses. */

import type { Usage } from "../../../core/index.ts"
import { compact, count, type Surprises, within } from "../common/counts.ts"
import { record, text } from "../common/json.ts"

/** Ticks of `cost_in_usd_ticks` (xAI) in a dollar: what makes recorded answers agree with that vendor's price list. */
const ticksPerDollar = 10_000_000_000

/**
 * Disjoint buckets of a `usage` object; `undefined` when it holds no count.
 * Prompt counts include cached ones. Completion counts include reasoning, except where the total says otherwise.
 */
export const tokensOf = (reported: unknown, surprises: Surprises): Usage | undefined => {
  const usage = record(reported)
  const read = (value: unknown) => count(value, surprises)
  const total = read(usage.total_tokens)
  const completion = read(usage.completion_tokens) ?? read(usage.output_tokens)
  // Some vendors of embeddings report nothing but a total.
  const prompt = read(usage.prompt_tokens) ?? read(usage.input_tokens) ?? (completion === undefined ? total : undefined)
  if (prompt === undefined && completion === undefined) return undefined
  const inputs = record(usage.prompt_tokens_details ?? usage.input_tokens_details)
  const outputs = record(usage.completion_tokens_details ?? usage.output_tokens_details)
  // What is missing on one side is not the other side's hidden reasoning.
  const known = prompt === undefined || completion === undefined ? undefined : total
  const output = outputOf(prompt ?? 0, completion ?? 0, known, read(outputs.reasoning_tokens))
  const cached = read(inputs.cached_tokens) ?? read(usage.prompt_cache_hit_tokens) ?? read(usage.cached_tokens) ?? 0
  const inputParts = [cached, read(inputs.cache_write_tokens) ?? 0, read(inputs.audio_tokens) ?? 0]
  const [cacheRead = 0, cacheWrite = 0, audioInput = 0] = within(prompt ?? 0, inputParts, surprises)
  const [audioOutput = 0] = within(output.all, [read(outputs.audio_tokens) ?? 0], surprises)
  const [reasoning = 0] = within(output.all, [output.reasoning], surprises)
  return compact({
    input: (prompt ?? 0) - cacheRead - cacheWrite - audioInput,
    cache_read: cacheRead,
    cache_write_5m: cacheWrite,
    output: output.all - audioOutput,
    audio_input: audioInput,
    audio_output: audioOutput,
    reasoning,
    cost_dollars: dollars(usage.cost_in_usd_ticks),
  })
}

/**
 * xAI leaves reasoning out of its completion count, and Google's compatible endpoint leaves out thoughts without naming
 * them: both show in the total, and both are billed.
 */
const outputOf = (prompt: number, completion: number, total: number | undefined, reasoning: number | undefined) => {
  const beside = total === undefined ? 0 : total - prompt - completion
  const outside = beside > 0 && (reasoning === undefined || reasoning === 0 || reasoning === beside)
  return outside ? { all: completion + beside, reasoning: beside } : { all: completion, reasoning: reasoning ?? 0 }
}

const dollars = (ticks: unknown): number =>
  typeof ticks === "number" && ticks > 0 && Number.isSafeInteger(ticks) ? ticks / ticksPerDollar : 0

/** The tier that a call was served in. `auto` is no tier: a stream begins with what was asked for. */
export const tierOf = (told: unknown): string | undefined => (told === "auto" ? undefined : text(told))
