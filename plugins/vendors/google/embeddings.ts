/** Embeddings of the generate-content API, seen from the hub. */

import type { EmbeddingsSpoke } from "../../../core/index.ts"
import { answerIn } from "../common/answers.ts"
import { embeddingList, inputType, textsOf } from "../common/embeddings.ts"
import { list, record } from "../common/json.ts"
import { wholeOnly, withUsage } from "../common/whole-meter.ts"
import { tokensOf } from "./usage.ts"

/** Of one batch. */
const textsMax = 100

const taskTypes = {
  search_document: "RETRIEVAL_DOCUMENT",
  document: "RETRIEVAL_DOCUMENT",
  search_query: "RETRIEVAL_QUERY",
  query: "RETRIEVAL_QUERY",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING",
}

/** Most answers have vectors and no counts: such a call is billed as it was estimated. */
export const embedMeter = wholeOnly((answer, surprises) =>
  withUsage(
    answer.embedding !== undefined || list(answer.embeddings).length > 0,
    tokensOf(answer.usageMetadata, surprises),
  ),
)

/** Always as a batch: one text is a batch of one. */
export const embeddingsSpoke: EmbeddingsSpoke = {
  api: "embed",
  takes: [],
  request(request, { target }) {
    const taskType = inputType(request, taskTypes)
    const shared = {
      model: `models/${target.model}`,
      ...(taskType === undefined ? {} : { taskType }),
      ...(typeof request.dimensions === "number" ? { outputDimensionality: request.dimensions } : {}),
    }
    const requests = textsOf(request, textsMax).map(text => ({ ...shared, content: { parts: [{ text }] } }))
    return { path: `/v1beta/models/${encodeURIComponent(target.model)}:batchEmbedContents`, body: { requests } }
  },
  whole(body, request) {
    const answer = answerIn(body)
    const vectors = list(answer.embeddings).map(one => record(one).values)
    const { promptTokenCount } = record(answer.usageMetadata)
    const tokens = typeof promptTokenCount === "number" ? promptTokenCount : undefined
    return embeddingList(vectors, textsOf(request, textsMax).length, tokens)
  },
}
