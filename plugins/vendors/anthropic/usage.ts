/** Token counts of the Messages wire: input excludes what the cache read and wrote, output includes thinking. */

import type { Usage } from "../../../core/index.ts"
import { compact, count, plus, type Surprises, within } from "../common/counts.ts"
import { type JsonObject, list, record, text } from "../common/json.ts"

/** Runs inside one answer that the totals leave out and that are billed beside them. */
const besideTotals: ReadonlySet<string> = new Set(["compaction", "advisor_message"])

/**
 * Later counts replace earlier ones, field by field: a stream's `message_delta` is cumulative and may correct even the
 * input; what it does not name keeps its first value.
 */
export const merge = (earlier: JsonObject, later: JsonObject): JsonObject => {
  const merged: Record<string, unknown> = { ...earlier }
  for (const name in later) if (later[name] !== null && later[name] !== undefined) merged[name] = later[name]
  return merged
}

/** Disjoint buckets of a `usage` object; `undefined` when it holds no count. */
export const tokensOf = (usage: JsonObject, surprises: Surprises): Usage | undefined => {
  let sum = countsOf(usage, surprises)
  if (sum === undefined) return undefined
  for (const item of list(usage.iterations)) {
    const iteration = record(item)
    if (besideTotals.has(text(iteration.type) ?? "")) sum = plus(sum, countsOf(iteration, surprises) ?? {})
  }
  return sum
}

const countsOf = (usage: JsonObject, surprises: Surprises): Usage | undefined => {
  const input = count(usage.input_tokens, surprises)
  const output = count(usage.output_tokens, surprises)
  if (input === undefined && output === undefined) return undefined
  const [fiveMinutes, oneHour] = cacheWrites(usage, surprises)
  const thinking = count(record(usage.output_tokens_details).thinking_tokens, surprises) ?? 0
  const [reasoning = 0] = within(output ?? 0, [thinking], surprises)
  return compact({
    input: input ?? 0,
    cache_read: count(usage.cache_read_input_tokens, surprises) ?? 0,
    cache_write_5m: fiveMinutes,
    cache_write_1h: oneHour,
    output: output ?? 0,
    web_search: count(record(usage.server_tool_use).web_search_requests, surprises) ?? 0,
    reasoning,
  })
}

/** The lives may be told for an earlier, smaller total than the last one; what is not told lives five minutes. */
const cacheWrites = (usage: JsonObject, surprises: Surprises): readonly [fiveMinutes: number, oneHour: number] => {
  const lives = record(usage.cache_creation)
  const fiveMinutes = count(lives.ephemeral_5m_input_tokens, surprises) ?? 0
  const oneHour = count(lives.ephemeral_1h_input_tokens, surprises) ?? 0
  const total = count(usage.cache_creation_input_tokens, surprises) ?? fiveMinutes + oneHour
  const hours = Math.min(oneHour, total)
  return [total - hours, hours]
}
