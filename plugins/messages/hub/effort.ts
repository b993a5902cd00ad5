/** How much a Messages request wants the model to think, as an effort of chat. */

import {
  effortOfTokens,
  efforts,
  isSet,
  type JsonObject,
  type Model,
  nearestEffort,
  record,
  refuse,
} from "../../../core/index.ts"

/**
 * `undefined`: the model's default. Clients of this wire ask every model to think; one that cannot is not asked. One that
 * thinks in any case thinks least when it is told not to.
 */
export const effortOf = (request: JsonObject, { capabilities, rules }: Model): string | undefined => {
  const wanted = wantedEffort(request)
  if (wanted === undefined || !capabilities.includes("reasoning")) return undefined
  if (wanted !== "none") return nearestEffort(wanted, rules.efforts)
  if (rules.efforts?.includes("none")) return "none"
  return rules.efforts && nearestEffort("none", rules.efforts)
}

const wantedEffort = ({ thinking, output_config }: JsonObject): string | undefined => {
  const { type, budget_tokens } = record(thinking)
  if (type === "disabled") return "none"
  if (type === "enabled" && typeof budget_tokens === "number") return effortOfTokens(budget_tokens)
  const { effort } = record(output_config)
  if (!isSet(effort)) return undefined
  const known = efforts.find(name => name === effort)
  if (known !== undefined) return known
  throw refuse("output_config.effort", `The effort must be one of ${efforts.join(", ")}`)
}
