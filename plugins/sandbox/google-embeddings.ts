/** `:embedContent` and `:batchEmbedContents`. No token counts: this vendor leaves them out. */

import type { JsonObject } from "../../core/index.ts"
import { google } from "./google.ts"
import { record, records, textOf } from "./json.ts"
import { vectorOf } from "./vector.ts"
import { limitOf, modelOf, Refusal, type Wire } from "./wire.ts"

const ownDimensions = 3072
const dimensionsMax = 4096
const requestsMax = 100

export const googleEmbed: Wire = {
  method: "POST",
  path: /\/models\/(?<model>[^:%/]+)(?::|%3[Aa])embedContent$/,
  manner: google,
  answer({ path, body }) {
    modelOf(path.model)
    return { whole: { embedding: embeddingOf(body) } }
  },
}

export const googleBatchEmbed: Wire = {
  method: "POST",
  path: /\/models\/(?<model>[^:%/]+)(?::|%3[Aa])batchEmbedContents$/,
  manner: google,
  answer({ path, body }) {
    const model = modelOf(path.model)
    const requests = records(body.requests)
    if (requests.length === 0 || requests.length > requestsMax) {
      throw new Refusal("invalid", "requests: expected 1 to 100 entries")
    }
    if (requests.some(request => request.model !== `models/${model}`)) {
      throw new Refusal("invalid", "requests: each model must be the one of the path")
    }
    return { whole: { embeddings: requests.map(embeddingOf) } }
  },
}

const embeddingOf = (request: JsonObject): JsonObject => {
  const content = textOf(record(request.content).parts)
  if (content === "") throw new Refusal("invalid", "content: expected text")
  const wanted = request.outputDimensionality ?? request.output_dimensionality ?? ownDimensions
  return { values: vectorOf(content, Math.min(limitOf(wanted, "outputDimensionality"), dimensionsMax)) }
}
