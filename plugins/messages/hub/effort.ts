/** How much a Messages request wants the model to think, as an effort of chat. */

import { effortOfTokens, isSet, type JsonObject, type Model, record, refuse } from "../../../core/index.ts"

/** From least to most. */
const scale: readonly string[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
const usual: readonly string[] = ["low", "medium", "high"]

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
  if (type === "enabled" && typeof budget_tokens === "number") return effortOfTokens(budget_tokens)
  const { effort } = record(output_config)
  if (!isSet(effort)) return undefined
  const known = scale.find(name => name === effort)
  if (known !== undefined) return known
  throw refuse("output_config.effort", `The effort must be one of ${scale.join(", ")}`)
}
