/** How much the model thinks: by a budget of tokens on models with `effort_budgets`, by a level on later ones. Never both. */

import {
  type AskedEffort,
  askedThinking,
  type ChatContext,
  type ChatRequest,
  efforts,
  isSet,
  type JsonObject,
  nearestEffort,
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
  const { effort_budgets: budgets, efforts: offered } = rules
  // Thoughts are shown only where thinking was asked for; they cost the same unseen.
  const includeThoughts = asked.effort !== "none"
  if (budgets === undefined) return { thinkingLevel: levelFor(asked.effort, offered), includeThoughts }
  const budget = budgetFor(asked.effort, budgets)
  if (budget === undefined) throw refuse(asked.field, `Model '${model.name}' always thinks; its least effort is low`)
  return { thinkingBudget: budget, includeThoughts }
}

/** Either wins over an effort beside it (specification 4.2). */
const askedBy = (request: ChatRequest): AskedEffort | undefined => {
  const { reasoning_effort: effort } = request
  const asked = askedThinking(request)
  if (asked !== undefined || !isSet(effort)) return asked
  if (efforts.includes(String(effort))) return { effort: String(effort), field: "reasoning_effort" }
  throw refuse("reasoning_effort", `'reasoning_effort' must be one of ${efforts.join(", ")}`)
}

/** Not to think at all is a budget of its own, which not every model has. */
const budgetFor = (effort: string, budgets: Readonly<Record<string, number>>): number | undefined =>
  budgets[effort === "none" ? effort : (nearestEffort(effort, Object.keys(budgets)) ?? "")]

/** Not every model has `minimal` and `medium`. */
const levelFor = (effort: string, offered: readonly string[] | undefined): string =>
  (nearestEffort(effort, offered) ?? "high").toUpperCase()
