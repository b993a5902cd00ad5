/** What a model can, by the words of the catalog. */

import type { ChatContext } from "../../../../core/index.ts"

export interface Abilities {
  /** Takes JSON Schemas as they are; others want the vendor's own, smaller dialect. */
  readonly jsonSchema: boolean
  readonly thinks: boolean
  /**
   * Thinks by a level, not by a budget of tokens (3 and later): takes tools beside a JSON format, and wants the thought
   * signature of each turn's first tool call.
   */
  readonly byLevel: boolean
  /** The vendor itself fetches public URLs for it; the gateway never does. */
  readonly fileUrls: boolean
}

export const abilitiesOf = ({ model, rules }: Pick<ChatContext, "model" | "rules">): Abilities => {
  const can = (word: string): boolean => model.capabilities.includes(word)
  return {
    jsonSchema: can("structured_output"),
    thinks: can("reasoning"),
    byLevel: can("reasoning") && rules.effort_budgets === undefined,
    fileUrls: can("file_urls"),
  }
}
