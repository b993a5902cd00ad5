/** `POST .../rerank` of Cohere, Voyage, Jina and the hosts of open models. */

import type { JsonObject } from "../../core/index.ts"
import { bearer } from "./bearer.ts"
import { list, text, texts } from "./json.ts"
import { openai } from "./openai.ts"
import { inputTokens } from "./tokens.ts"
import { limitOf, modelOf, Refusal, type Wire } from "./wire.ts"

/** Of one search unit. */
const documentsPerSearch = 100

export const cohereRerank: Wire = {
  method: "POST",
  path: /\/v2\/rerank$/,
  manner: bearer("message"),
  answer({ body, id }) {
    const { results, documents } = ranked(body, "top_n")
    const searchUnits = Math.ceil(documents.length / documentsPerSearch)
    const meta = { api_version: { version: "2" }, billed_units: { search_units: searchUnits } }
    return { whole: { id: id("rerank-"), results, meta } }
  },
}

export const voyageRerank: Wire = {
  method: "POST",
  path: /\/v1\/rerank$/,
  model: /^rerank-/,
  manner: bearer("detail"),
  answer({ body }) {
    const { results, model, tokens } = ranked(body, "top_k")
    return { whole: { object: "list", data: results, model, usage: { total_tokens: tokens } } }
  },
}

export const jinaRerank: Wire = {
  method: "POST",
  path: /\/v1\/rerank$/,
  model: /^jina-/,
  manner: bearer("detail"),
  answer({ body }) {
    const { results, model, tokens } = ranked(body, "top_n")
    return { whole: { model, object: "list", results, usage: { total_tokens: tokens } } }
  },
}

export const hostedRerank: Wire = {
  method: "POST",
  path: /\/rerank$/,
  manner: openai,
  answer({ body, id }) {
    const { results, model, tokens } = ranked(body, "top_n")
    const usage = { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens }
    return { whole: { id: id("rr-"), object: "rerank", model, results, usage } }
  },
}

/** A document fits as well as its share of the query's words. */
const ranked = (body: JsonObject, limit: "top_n" | "top_k") => {
  const model = modelOf(body.model)
  const documents = texts(body.documents)
  const query = text(body.query)
  if (query === undefined) throw new Refusal("invalid", "query: expected a text")
  if (documents.length === 0 || documents.length !== list(body.documents).length) {
    throw new Refusal("invalid", "documents: expected texts")
  }
  const wanted = new Set(wordsOf(query))
  const results = documents
    .map((document, index) => ({ index, relevance_score: fitness(wanted, document) }))
    .sort((one, other) => other.relevance_score - one.relevance_score || one.index - other.index)
    .slice(0, limitOf(body[limit], limit))
  return { model, results, documents, tokens: inputTokens([query, ...documents]) }
}

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

const fitness = (wanted: ReadonlySet<string>, document: string): number => {
  const found = new Set(wordsOf(document).filter(word => wanted.has(word)))
  return Math.round((0.01 + (0.98 * found.size) / Math.max(1, wanted.size)) * 1e6) / 1e6
}
