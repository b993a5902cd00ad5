/** Cohere's own wire: embeddings and rerank. Its chat is served by its compatible endpoint, with the adapter `openai`. */

import { type Adapter, apiPath, type EmbeddingsSpoke } from "../../core/index.ts"
import { answerIn, apiPathOptions, picked } from "./common/answers.ts"
import { compact, count, type Surprises } from "./common/counts.ts"
import { embeddingList, inputType, textsOf } from "./common/embeddings.ts"
import { type JsonObject, list, record } from "./common/json.ts"
import { messageDialect, messageFaults } from "./common/message-faults.ts"
import { rerankSpoke } from "./common/rerank.ts"
import { inputOf, wholeOnly, withUsage } from "./common/whole-meter.ts"

/** Of one embed call. */
const textsMax = 96

const inputTypes = { document: "search_document", query: "search_query" }

const billed = (answer: JsonObject): JsonObject => record(record(answer.meta).billed_units)

const embeddings: EmbeddingsSpoke = {
  api: "embed",
  takes: ["truncate"],
  request: (request, { target, vendor }) => ({
    path: `${apiPath(vendor, "/v2")}/embed`,
    body: {
      model: target.model,
      texts: textsOf(request, textsMax),
      // Required by the vendor.
      input_type: inputType(request, inputTypes) ?? "search_document",
      embedding_types: ["float"],
      ...(typeof request.dimensions === "number" ? { output_dimension: request.dimensions } : {}),
      ...picked(request, ["truncate"]),
    },
  }),
  whole(body, request) {
    const answer = answerIn(body)
    const { input_tokens } = billed(answer)
    const tokens = typeof input_tokens === "number" ? input_tokens : undefined
    return embeddingList(list(record(answer.embeddings).float), textsOf(request, textsMax).length, tokens)
  },
}

/** A search unit is one query over up to 100 documents: a request of the price card. */
const searches = (answer: JsonObject, surprises: Surprises) => {
  const units = count(billed(answer).search_units, surprises)
  return units === undefined ? undefined : compact({ requests: units })
}

export default {
  name: "cohere",
  dialect: messageDialect("cohere"),
  fields: { toVendor: ["content-type", "accept"], toClient: ["content-type", "retry-after"], query: [] },
  options: apiPathOptions,
  authorise: secret => ({ authorization: `Bearer ${secret.reveal()}` }),
  apis: {
    embed: wholeOnly((answer, surprises) =>
      withUsage(list(record(answer.embeddings).float).length > 0, inputOf(billed(answer).input_tokens, surprises)),
    ),
    rerank: wholeOnly((answer, surprises) => withUsage(list(answer.results).length > 0, searches(answer, surprises))),
  },
  // 498: a token that the vendor's own filter does not take.
  fault: messageFaults({
    statuses: { 498: "account", 499: "server" },
    account: /^(?:invalid api token|no api key supplied|you are using a trial (?:key|token))/i,
  }),
  embeddings,
  rerank: rerankSpoke({
    path: ({ vendor }) => `${apiPath(vendor, "/v2")}/rerank`,
    limit: "top_n",
    results: "results",
    extra: ["max_tokens_per_doc", "priority"],
  }),
} satisfies Adapter
