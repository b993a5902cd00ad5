/** Rerank: one wire with small differences, as a table of words. */

import { type AdapterContext, type RerankResult, type RerankSpoke, unreadable } from "../../../core/index.ts"
import { answerIn, picked } from "./answers.ts"
import { type JsonObject, list, record } from "./json.ts"

export interface RerankWords {
  readonly path: (context: AdapterContext) => string
  /** How the vendor calls the limit. */
  readonly limit: "top_n" | "top_k"
  /** Where the results stand in its answer. */
  readonly results: "results" | "data"
  /** Fields of its own that clients may send. */
  readonly extra: readonly string[]
}

/** Texts are never asked for: the gateway has them. */
export const rerankSpoke = ({ path, limit, results, extra }: RerankWords): RerankSpoke => ({
  api: "rerank",
  request: (request, context) => ({
    path: path(context),
    body: {
      model: context.target.model,
      query: request.query,
      documents: request.documents,
      ...(request.top_n === undefined ? {} : { [limit]: request.top_n }),
      ...picked(request, extra),
    },
  }),
  whole(body) {
    const answer = answerIn(body)
    if (!Array.isArray(answer[results])) throw unreadable()
    const { total_tokens } = record(answer.usage)
    const { search_units } = record(record(answer.meta).billed_units)
    return {
      results: list(answer[results]).map(result => resultOf(record(result))),
      ...(typeof answer.id === "string" ? { id: answer.id } : {}),
      ...(typeof total_tokens === "number" ? { totalTokens: total_tokens } : {}),
      ...(typeof search_units === "number" ? { searchUnits: search_units } : {}),
    }
  },
})

/** Scores may lie outside 0 to 1: some models give raw logits. */
const resultOf = ({ index, relevance_score }: JsonObject): RerankResult => {
  if (typeof index !== "number" || typeof relevance_score !== "number") throw unreadable()
  return { index, relevance_score }
}
