/** `POST /v1/embeddings`. */

import { record } from "./json.ts"
import { invalid, openai } from "./openai.ts"
import { inputTokens } from "./tokens.ts"
import { base64Of, vectorOf } from "./vector.ts"
import { limitOf, modelOf, type Wire } from "./wire.ts"

const ownDimensions: Readonly<Record<string, number>> = { "text-embedding-3-large": 3072, "mistral-embed": 1024 }
const dimensionsMax = 4096

export const openaiEmbeddings: Wire = {
  method: "POST",
  path: /\/embeddings$/,
  manner: openai,
  answer({ body }) {
    const model = modelOf(body.model)
    const inputs = inputsOf(body.input)
    const wanted = body.dimensions ?? body.output_dimension ?? record(ownDimensions)[model] ?? 1536
    const dimensions = Math.min(limitOf(wanted, "dimensions"), dimensionsMax)
    const tokens = inputs.reduce<number>(
      (sum, input) => sum + (Array.isArray(input) ? input.length : inputTokens(input)),
      0,
    )
    const data = inputs.map((input, index) => {
      const vector = vectorOf(JSON.stringify(input), dimensions)
      return { object: "embedding", index, embedding: body.encoding_format === "base64" ? base64Of(vector) : vector }
    })
    return { whole: { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } } }
  },
}

/** A text, a list of texts, the tokens of one text, or a list of those. */
const inputsOf = (input: unknown): readonly (string | readonly number[])[] => {
  const inputs = Array.isArray(input) && typeof input[0] !== "number" ? input : [input]
  if (inputs.length === 0 || inputs.length > 2048) throw invalid("input: expected 1 to 2048 entries", "input")
  if (!inputs.every(isInput)) throw invalid("input: expected texts that are not empty, or tokens", "input")
  return inputs
}

const isInput = (input: unknown): input is string | readonly number[] =>
  Array.isArray(input) ? input.length > 0 && input.every(Number.isInteger) : typeof input === "string" && input !== ""
