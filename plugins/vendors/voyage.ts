/** Voyage: embeddings in the hub's shape with words of its own, and rerank. */

import { type Adapter, apiPath, type EmbeddingsSpoke } from "../../core/index.ts"
import { apiPathOptions, picked } from "./common/answers.ts"
import { countedList, inputType, textsOf } from "./common/embeddings.ts"
import { type JsonObject, list, record } from "./common/json.ts"
import { messageDialect, messageFaults } from "./common/message-faults.ts"
import { rerankSpoke } from "./common/rerank.ts"
import { inputOf, wholeOnly, withUsage } from "./common/whole-meter.ts"

/** Of one call; the sum of tokens is bounded by the vendor, per model. */
const textsMax = 1000

const inputTypes = { search_document: "document", search_query: "query" }
/** The vendor knows two kinds; any other text is embedded without a hint. */
const known: ReadonlySet<string | undefined> = new Set(["document", "query"])

const embeddings: EmbeddingsSpoke = {
  api: "embeddings",
  takes: ["truncation"],
  request: (request, { target, vendor }) => {
    const type = inputType(request, inputTypes)
    return {
      path: `${apiPath(vendor)}/embeddings`,
      body: {
        model: target.model,
        input: textsOf(request, textsMax),
        ...(known.has(type) ? { input_type: type } : {}),
        ...(typeof request.dimensions === "number" ? { output_dimension: request.dimensions } : {}),
        // The vendor takes this word or nothing.
        ...(request.encoding_format === "base64" ? { encoding_format: "base64" } : {}),
        ...picked(request, ["truncation"]),
      },
    }
  },
  whole: (body, request) => countedList(body, textsOf(request, textsMax).length),
}

const listed = wholeOnly((answer: JsonObject, surprises) =>
  withUsage(list(answer.data).length > 0, inputOf(record(answer.usage).total_tokens, surprises)),
)

export default {
  name: "voyage",
  dialect: messageDialect("voyage"),
  fields: { toVendor: ["content-type", "accept"], toClient: ["content-type", "retry-after"], query: [] },
  options: apiPathOptions,
  authorise: secret => ({ authorization: `Bearer ${secret.reveal()}` }),
  apis: { embeddings: listed, rerank: listed },
  // An account without a way of payment is limited to a few calls a minute.
  fault: messageFaults({ account: /^(?:provided api key is invalid|you have not yet added your payment method)/i }),
  embeddings,
  rerank: rerankSpoke({
    path: ({ vendor }) => `${apiPath(vendor)}/rerank`,
    limit: "top_k",
    results: "data",
    extra: ["truncation"],
  }),
} satisfies Adapter
