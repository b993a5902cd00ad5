/** Token counts of the Messages wire: input excludes what the cache read and wrote, output includes thinking. */

import type { Usage } from "../../../core/index.ts"
import { compact, count, plus, type Surprises, within } from "../common/counts.ts"
import { type Json, list, record, text } from "../common/json.ts"

/** Runs inside one answer that the totals leave out and that are billed beside them. */
const besideTotals: ReadonlySet<string> = new Set(["compaction", "advisor_message"])

/**
 * Later counts replace earlier ones, field by field: a stream's `message_delta` is cumulative and may correct even the
 * input; what it does not name keeps its first value.
 */
export const merge = (earlier: Json, later: Json): Json => {
  const named = Object.entries(later).filter(([, value]) => value !== null && value !== undefined)
  return { ...earlier, ...Object.fromEntries(named) }
}

/** Disjoint buckets of a `usage` object; `undefined` when it holds no count. */
export const tokensOf = (usage: Json, surprises: Surprises): Usage | undefined => {
  const own = countsOf(usage, surprises)
  if (own === undefined) return undefined
  return list(usage.iterations)
    .map(record)
    .filter(iteration => besideTotals.has(text(iteration.type) ?? ""))
    .reduce((sum: Usage, iteration) => plus(sum, countsOf(iteration, surprises) ?? {}), own)
}

const countsOf = (usage: Json, surprises: Surprises): Usage | undefined => {
  const read = (value: unknown) => count(value, surprises)
  const input = read(usage.input_tokens)
  const output = read(usage.output_tokens)
  if (input === undefined && output === undefined) return undefined
  const [fiveMinutes, oneHour] = cacheWrites(usage, surprises)
  const thinking = read(record(usage.output_tokens_details).thinking_tokens) ?? 0
  const [reasoning = 0] = within(output ?? 0, [thinking], surprises)
  return compact({
    input: input ?? 0,
    cache_read: read(usage.cache_read_input_tokens) ?? 0,
    cache_write_5m: fiveMinutes,
    cache_write_1h: oneHour,
    output: output ?? 0,
    web_search: read(record(usage.server_tool_use).web_search_requests) ?? 0,
    reasoning,
  })
}

/** The lives may be told for an earlier, smaller total than the last one; what is not told lives five minutes. */
const cacheWrites = (usage: Json, surprises: Surprises): readonly [fiveMinutes: number, oneHour: number] => {
  const lives = record(usage.cache_creation)
  const fiveMinutes = count(lives.ephemeral_5m_input_tokens, surprises) ?? 0
  const oneHour = count(lives.ephemeral_1h_input_tokens, surprises) ?? 0
  const total = count(usage.cache_creation_input_tokens, surprises) ?? fiveMinutes + oneHour
  const hours = Math.min(oneHour, total)
  return [total - hours, hours]
}
