/** How much the model thinks: by a budget of tokens on models with `effort_budgets`, by a level on later ones. Never both. */

import {
  type AskedEffort,
  askedThinking,
  type ChatContext,
  type ChatRequest,
  isSet,
  type JsonObject,
  refuse,
} from "../../../../core/index.ts"
import type { Abilities } from "./abilities.ts"

/** `thinkingConfig`, or nothing where it is left to the model. */
export const thinkingOf = (
  request: ChatRequest,
  { model, rules }: Pick<ChatContext, "model" | "rules">,
  { thinks }: Abilities,
): JsonObject | undefined => {
  const asked = askedBy(request)
  if (asked === undefined) return undefined
  if (!thinks) throw refuse(asked.field, `Model '${model.name}' does not take '${asked.field}'`)
  const { effort_budgets: budgets, efforts } = rules
  // Thoughts are shown only where thinking was asked for; they cost the same unseen.
  const includeThoughts = asked.effort !== "none"
  if (budgets === undefined) return { thinkingLevel: levelFor(asked.effort, efforts), includeThoughts }
  const budget = budgetFor(asked.effort, budgets)
  if (budget === undefined) throw refuse(asked.field, `Model '${model.name}' always thinks; its least effort is low`)
  return { thinkingBudget: budget, includeThoughts }
}

const efforts: ReadonlySet<unknown> = new Set(["none", "minimal", "low", "medium", "high", "xhigh", "max"])

/** Either wins over an effort beside it (specification 4.2). */
const askedBy = (request: ChatRequest): AskedEffort | undefined => {
  const { reasoning_effort: effort } = request
  const asked = askedThinking(request)
  if (asked !== undefined || !isSet(effort)) return asked
  if (efforts.has(effort)) return { effort: String(effort), field: "reasoning_effort" }
  throw refuse("reasoning_effort", `'reasoning_effort' must be one of ${[...efforts].join(", ")}`)
}

/** What stands in for an effort that has no budget of its own. */
const nearest: Readonly<Record<string, string>> = { minimal: "low", xhigh: "high", max: "high" }

const budgetFor = (effort: string, budgets: Readonly<Record<string, number>>): number | undefined =>
  [effort, nearest[effort] ?? effort].filter(name => Object.hasOwn(budgets, name)).map(name => budgets[name])[0]

/** For each effort, the levels that may stand for it, the best first; not every model has `minimal` and `medium`. */
const wanted: Readonly<Record<string, readonly string[]>> = {
  none: ["minimal", "low"],
  minimal: ["minimal", "low"],
  low: ["low"],
  medium: ["medium", "high"],
  high: ["high"],
  xhigh: ["high"],
  max: ["high"],
}
const usual: readonly string[] = ["low", "medium", "high"]

const levelFor = (effort: string, offered: readonly string[] = usual): string => {
  const names = wanted[effort] ?? usual
  return (names.find(name => offered.includes(name)) ?? names.at(-1) ?? "high").toUpperCase()
}
