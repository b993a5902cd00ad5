/** Jina: embeddings in the hub's shape with words of its own, and rerank. */

import { type Adapter, apiPath, type EmbeddingsSpoke } from "../../core/index.ts"
import { apiPathOptions, picked } from "./common/answers.ts"
import { countedList, inputType, textsOf } from "./common/embeddings.ts"
import { list, record } from "./common/json.ts"
import { messageDialect, messageFaults } from "./common/message-faults.ts"
import { rerankSpoke } from "./common/rerank.ts"
import { inputOf, wholeOnly, withUsage } from "./common/whole-meter.ts"

/** Of one call. */
const textsMax = 2048

const tasks = {
  search_document: "retrieval.passage",
  document: "retrieval.passage",
  search_query: "retrieval.query",
  query: "retrieval.query",
  classification: "classification",
  clustering: "separation",
}

const embeddings: EmbeddingsSpoke = {
  api: "embeddings",
  takes: ["truncate", "late_chunking", "normalized"],
  request: (request, { target, vendor }) => {
    const task = inputType(request, tasks)
    return {
      path: `${apiPath(vendor)}/embeddings`,
      body: {
        model: target.model,
        input: textsOf(request, textsMax),
        ...(task === undefined ? {} : { task }),
        ...(typeof request.dimensions === "number" ? { dimensions: request.dimensions } : {}),
        ...(request.encoding_format === "base64" ? { embedding_type: "base64" } : {}),
        ...picked(request, ["truncate", "late_chunking", "normalized"]),
      },
    }
  },
  whole: (body, request) => countedList(body, textsOf(request, textsMax).length),
}

const by = (key: "data" | "results") =>
  wholeOnly((answer, surprises) =>
    withUsage(list(answer[key]).length > 0, inputOf(record(answer.usage).total_tokens, surprises)),
  )

export default {
  name: "jina",
  dialect: messageDialect("jina"),
  fields: { toVendor: ["content-type", "accept"], toClient: ["content-type", "retry-after"], query: [] },
  options: apiPathOptions,
  authorise: secret => ({ authorization: `Bearer ${secret.reveal()}` }),
  apis: { embeddings: by("data"), rerank: by("results") },
  fault: messageFaults({ account: /^(?:invalid api key|unauthorized|insufficient (?:account )?balance)/i }),
  embeddings,
  rerank: rerankSpoke({
    path: ({ vendor }) => `${apiPath(vendor)}/rerank`,
    limit: "top_n",
    results: "results",
    extra: ["truncate"],
  }),
} satisfies Adapter
