/** How much a Messages request wants the model to think, as an effort of chat. */

import type { JsonObject, Model } from "../../../core/index.ts"
import { record, text } from "./read.ts"

/** From least to most. */
const scale: readonly string[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
const usual: readonly string[] = ["low", "medium", "high"]

/** The most thinking tokens that still are this effort (specification 4.2); above the last one it is `high`. */
const budgets: readonly (readonly [most: number, effort: string])[] = [
  [2_048, "low"],
  [16_384, "medium"],
  [Number.POSITIVE_INFINITY, "high"],
]

/** `undefined`: the model's default. Clients of this wire ask every model to think; one that cannot is not asked. */
export const effortOf = (request: JsonObject, { capabilities, rules }: Model): string | undefined => {
  const wanted = wantedEffort(request)
  if (wanted === undefined || !capabilities.includes("reasoning")) return undefined
  const offered = rules.efforts ?? usual
  if (wanted === "none") return offered.includes("none") ? "none" : undefined
  const known = scale.filter(effort => effort !== "none" && offered.includes(effort))
  return known.find(effort => scale.indexOf(effort) >= scale.indexOf(wanted)) ?? known.at(-1)
}

const wantedEffort = ({ thinking, output_config }: JsonObject): string | undefined => {
  const { type, budget_tokens } = record(thinking)
  if (type === "disabled") return "none"
  if (type === "enabled" && typeof budget_tokens === "number") {
    return budgets.find(([most]) => budget_tokens <= most)?.[1]
  }
  const effort = text(record(output_config).effort)
  return effort !== undefined && scale.includes(effort) ? effort : undefined
}
