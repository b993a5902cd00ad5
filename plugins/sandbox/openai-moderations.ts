/** `POST /v1/moderations`. */

import type { JsonObject } from "../../core/index.ts"
import { records, textOf } from "./json.ts"
import { invalid, openai } from "./openai.ts"
import { modelOf, type Wire } from "./wire.ts"

/** The words that raise a category here. */
const words: Readonly<Record<string, RegExp>> = {
  harassment: /\b(?:idiot|loser)\b/i,
  "harassment/threatening": /\bi will hurt you\b/i,
  hate: /\bi hate (?:them|those people)\b/i,
  "hate/threatening": /\bthey (?:all )?must die\b/i,
  illicit: /\b(?:steal|counterfeit)\b/i,
  "illicit/violent": /\b(?:bomb|explosive)\b/i,
  "self-harm": /\bself-?harm\b/i,
  "self-harm/intent": /\b(?:hurt|kill) myself\b/i,
  "self-harm/instructions": /\bhow to (?:hurt|kill) (?:myself|oneself)\b/i,
  sexual: /\bporn/i,
  "sexual/minors": /\bchild porn/i,
  violence: /\b(?:kill|murder|hurt)\b/i,
  "violence/graphic": /\b(?:gore|dismember)/i,
}
const categories = Object.keys(words)

/** Only these are judged in images. */
const seenInImages = /^(?:self-harm|sexual$|violence)/

export const openaiModerations: Wire = {
  method: "POST",
  path: /\/moderations$/,
  manner: openai,
  answer({ body, id }) {
    const model = modelOf(body.model ?? "omni-moderation-latest")
    return { whole: { id: id("modr-"), model, results: inputsOf(body.input).map(judge) } }
  },
}

interface Input {
  readonly text: string
  readonly hasImage: boolean
}

/** One result for each text; one for all typed parts together. */
const inputsOf = (input: unknown): readonly Input[] => {
  if (typeof input === "string") return [{ text: input, hasImage: false }]
  if (Array.isArray(input) && input.length > 0) {
    if (input.every(one => typeof one === "string")) return input.map(text => ({ text, hasImage: false }))
    const parts = records(input)
    if (parts.length === input.length) {
      return [{ text: textOf(parts), hasImage: parts.some(part => part.type === "image_url") }]
    }
  }
  throw invalid("input: expected a text, texts, or typed parts", "input")
}

const judge = ({ text, hasImage }: Input): JsonObject => {
  const raised = new Set(categories.filter(category => words[category]!.test(text)))
  const each = (value: (category: string) => unknown): JsonObject =>
    Object.fromEntries(categories.map(category => [category, value(category)]))
  return {
    flagged: raised.size > 0,
    categories: each(category => raised.has(category)),
    category_scores: each(category => (raised.has(category) ? 0.97 : 0.0001)),
    category_applied_input_types: each(category =>
      hasImage && seenInImages.test(category) ? ["text", "image"] : ["text"],
    ),
  }
}
