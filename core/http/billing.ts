/** What a call is billed by, at its one moment of billing: vendor-reported usage, counted output, or nothing. */

import type { UsageReport } from "../adapter.ts"
import { buckets, type Usage } from "../offer.ts"
import type { Bill } from "../plugin.ts"

/**
 * How the upstream's part ended. `delivered`: whole; `broken`: the vendor died midway; `cancelled`: we stopped reading
 * (client left, drain limit, shutdown).
 */
export type UpstreamEnd = "delivered" | "broken" | "cancelled"

/** UTF-8 bytes of output text for one counted token. */
const bytesPerToken = 3.5

const counted = (outputBytes: number): number => Math.ceil(outputBytes / bytesPerToken)

/** Vectors and scores have no output to count. */
const outputOf = ({ wordless, outputBytes }: UsageReport, reported = 0): Usage =>
  wordless === true ? {} : { output: Math.max(reported, counted(outputBytes)) }

const isPositive = (usage: Usage | undefined): usage is Usage =>
  usage !== undefined && ((usage.cost_dollars ?? 0) > 0 || buckets.some(bucket => (usage[bucket] ?? 0) > 0))

const hasInput = (usage: Usage): boolean =>
  (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0) > 0

/**
 * @param estimated the input that the hold was sized by
 * @returns the bill, or `undefined` when the hold is to be released; `missing` when output was seen without usage
 */
export const billFor = (
  report: UsageReport,
  end: UpstreamEnd,
  estimated: Usage,
): { readonly bill: Bill | undefined; readonly missing: boolean } => {
  const reported = isPositive(report.usage) ? report.usage : undefined
  if (end === "cancelled") return { bill: cancelled(report, reported, estimated), missing: false }
  if (reported !== undefined) return { bill: billOf(report, reported, "vendor"), missing: false }
  if (end === "broken" || report.outputBytes === 0) return { bill: undefined, missing: false }
  return { bill: billOf(report, { ...estimated, ...outputOf(report) }, "counted"), missing: true }
}

const billOf = ({ serviceTier }: UsageReport, usage: Usage, source: Bill["source"]): Bill =>
  serviceTier === undefined ? { usage, source } : { usage, source, serviceTier }

/** Vendors bill what they generated: the input that they reported (else the estimate) and the output that we saw. */
const cancelled = (report: UsageReport, reported: Usage | undefined, estimated: Usage): Bill | undefined => {
  if (reported === undefined && report.outputBytes === 0) return undefined
  const input = reported !== undefined && hasInput(reported) ? reported : { ...estimated, ...reported }
  return billOf(report, { ...input, ...outputOf(report, reported?.output) }, "counted")
}
