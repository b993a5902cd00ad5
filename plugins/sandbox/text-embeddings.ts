/** Embeddings of Cohere (`POST /v2/embed`), Voyage and Jina (`POST /v1/embeddings`). */

import type { JsonObject } from "../../core/index.ts"
import { bearer } from "./bearer.ts"
import { list, texts } from "./json.ts"
import { inputTokens } from "./tokens.ts"
import { base64Of, vectorOf } from "./vector.ts"
import { limitOf, modelOf, Refusal, type Wire } from "./wire.ts"

const ownDimensions = 1024
const dimensionsMax = 4096
const cohereTextsMax = 96

export const cohereEmbed: Wire = {
  method: "POST",
  path: /\/v2\/embed$/,
  manner: bearer("message"),
  answer({ body, id }) {
    modelOf(body.model)
    const inputs = inputsOf(body, "texts")
    if (inputs.length > cohereTextsMax) throw new Refusal("invalid", "texts: at most 96 texts are taken")
    if (typeof body.input_type !== "string") throw new Refusal("invalid", "input_type: field required")
    const meta = { api_version: { version: "2" }, billed_units: { input_tokens: inputTokens(inputs) } }
    const float = vectorsOf(inputs, body.output_dimension)
    return {
      whole: { id: id("embed-"), texts: inputs, embeddings: { float }, meta, response_type: "embeddings_by_type" },
    }
  },
}

export const voyageEmbeddings: Wire = {
  method: "POST",
  path: /\/v1\/embeddings$/,
  model: /^voyage-/,
  manner: bearer("detail"),
  answer: ({ body }) => listed(body, body.output_dimension, body.encoding_format),
}

export const jinaEmbeddings: Wire = {
  method: "POST",
  path: /\/v1\/embeddings$/,
  model: /^jina-/,
  manner: bearer("detail"),
  answer: ({ body }) => listed(body, body.dimensions, body.embedding_type),
}

const listed = (body: JsonObject, dimensions: unknown, coding: unknown) => {
  const model = modelOf(body.model)
  const inputs = inputsOf(body, "input")
  const data = vectorsOf(inputs, dimensions).map((vector, index) => ({
    object: "embedding",
    index,
    embedding: coding === "base64" ? base64Of(vector) : vector,
  }))
  return { whole: { object: "list", data, model, usage: { total_tokens: inputTokens(inputs) } } }
}

const inputsOf = (body: JsonObject, field: string): readonly string[] => {
  const inputs = texts(body[field])
  const sent = Array.isArray(body[field]) ? list(body[field]).length : 1
  if (inputs.length === 0 || inputs.length !== sent) throw new Refusal("invalid", `${field}: expected texts`)
  return inputs
}

const vectorsOf = (inputs: readonly string[], wanted: unknown): readonly (readonly number[])[] => {
  const dimensions = Math.min(limitOf(wanted ?? ownDimensions, "output_dimension"), dimensionsMax)
  return inputs.map(input => vectorOf(input, dimensions))
}
