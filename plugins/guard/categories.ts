/** The verdict of a guard LLM in the shape of a moderation. */

import { unreadable } from "../../core/index.ts"

/** The names that moderation clients know. */
const moderationCategories = [
  "harassment",
  "harassment/threatening",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm",
  "self-harm/intent",
  "self-harm/instructions",
  "sexual",
  "sexual/minors",
  "violence",
  "violence/graphic",
] as const

/** The hazard codes of Llama Guard 3 and 4. What moderations have no name for keeps one of its own. */
const categoryOfCode: Readonly<Record<string, string>> = {
  S1: "illicit/violent",
  S2: "illicit",
  S3: "sexual",
  S4: "sexual/minors",
  S5: "defamation",
  S6: "specialized-advice",
  S7: "privacy",
  S8: "intellectual-property",
  S9: "illicit/violent",
  S10: "hate",
  S11: "self-harm",
  S12: "sexual",
  S13: "elections",
  S14: "code-interpreter-abuse",
}

const categories: readonly string[] = [...new Set([...moderationCategories, ...Object.values(categoryOfCode)])]

/** `safe`, or `unsafe` and a line of codes; some hosts leave the codes out. */
const verdict = /^\s*(safe|unsafe)\b[\s:]*((?:S\d{1,2}[\s,]*)*)\s*$/i

export interface Verdict {
  readonly flagged: boolean
  readonly categories: Readonly<Record<string, boolean>>
  /** 0 or 1: such a model says yes or no. */
  readonly category_scores: Readonly<Record<string, number>>
}

/** @throws GatewayError `upstream_unreadable` (502): the model said something else. Never taken for "safe" */
export const verdictOf = (text: string): Verdict => {
  const [, word, codes = ""] = verdict.exec(text) ?? []
  if (word === undefined) throw unreadable()
  const flagged = word.toLowerCase() === "unsafe"
  const raised = new Set(flagged ? (codes.toUpperCase().match(/S\d+/g) ?? []).map(code => categoryOfCode[code]) : [])
  return {
    flagged,
    categories: Object.fromEntries(categories.map(name => [name, raised.has(name)])),
    category_scores: Object.fromEntries(categories.map(name => [name, raised.has(name) ? 1 : 0])),
  }
}
