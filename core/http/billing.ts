/** What a call is billed by, at its one moment of billing: vendor-reported usage, counted output, or nothing. */

import type { UsageReport } from "../adapter.ts"
import { countedOutput, tokensIn } from "../kit/estimate.ts"
import { buckets, inputBuckets, outputBuckets, type Usage } from "../offer.ts"
import type { Bill } from "../plugin.ts"

/**
 * How the upstream's part ended. `delivered`: whole; `broken`: the vendor died midway; `cancelled`: we stopped reading
 * (client left, drain limit, shutdown).
 */
export type UpstreamEnd = "delivered" | "broken" | "cancelled"

/** Vectors and scores have no output to count. */
const outputOf = ({ wordless, outputBytes }: UsageReport, reported = 0): Usage =>
  wordless === true || outputBytes === 0 ? {} : { output: Math.max(reported, countedOutput(outputBytes)) }

const isPositive = (usage: Usage | undefined): usage is Usage =>
  usage !== undefined && ((usage.cost_dollars ?? 0) > 0 || buckets.some(bucket => (usage[bucket] ?? 0) > 0))

const hasInput = (usage: Usage): boolean => tokensIn(usage, inputBuckets) > 0
const hasOutput = (usage: Usage): boolean => tokensIn(usage, outputBuckets) > 0

/**
 * @param estimated the input that the hold was sized by
 * @param seen content came that no word of was counted: an image, or what could not be read
 * @returns the bill, or `undefined` when the hold is to be released; `missing` when output was seen without usage
 */
export const billFor = (
  report: UsageReport,
  end: UpstreamEnd,
  estimated: Usage,
  seen = false,
): { readonly bill: Bill | undefined; readonly missing: boolean } => {
  const reported = isPositive(report.usage) ? report.usage : undefined
  if (end === "cancelled") return { bill: cancelled(report, reported, estimated, seen), missing: false }
  if (reported !== undefined) return end === "broken" ? whole(report, reported) : completed(report, reported, estimated)
  if (end === "broken" || (report.outputBytes === 0 && !seen)) return { bill: undefined, missing: false }
  return { bill: billOf(report, { ...estimated, ...outputOf(report) }, "counted"), missing: true }
}

const whole = (report: UsageReport, usage: Usage) => ({ bill: billOf(report, usage, "vendor"), missing: false })

/** A side of the tokens of which the vendor said nothing (or nonsense) is estimated, or counted. */
const completed = (report: UsageReport, reported: Usage, estimated: Usage) => {
  const [input, output] = [hasInput(reported), hasOutput(reported)]
  const unsaid = report.outputBytes > 0 && report.wordless !== true && (report.provisional === true || !output)
  if ((!input && !output) || (input && !unsaid)) return whole(report, reported)
  const usage = { ...(input ? {} : estimated), ...reported, ...(unsaid ? outputOf(report, reported.output) : {}) }
  return { bill: billOf(report, usage, "counted"), missing: true }
}

const billOf = ({ serviceTier }: UsageReport, usage: Usage, source: Bill["source"]): Bill =>
  serviceTier === undefined ? { usage, source } : { usage, source, serviceTier }

/** Vendors bill what they generated: the input that they reported (else the estimate) and the output that we saw. */
const cancelled = (
  report: UsageReport,
  reported: Usage | undefined,
  estimated: Usage,
  seen: boolean,
): Bill | undefined => {
  if (reported === undefined && report.outputBytes === 0 && !seen) return undefined
  const input = reported !== undefined && hasInput(reported) ? reported : { ...estimated, ...reported }
  return billOf(report, { ...input, ...outputOf(report, reported?.output) }, "counted")
}
