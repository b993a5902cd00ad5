/** `POST /rerank/`: documents in the order of their fitness for a query, in a shape that Cohere's and Jina's clients read. */

import {
  type Body,
  type Draft,
  estimatedInput,
  GatewayError,
  type JsonObject,
  type Plugin,
  type RerankAnswer,
  type RerankRequest,
  type RerankResult,
  sendDraft,
  spokeContext,
  spokeOf,
  unreadable,
} from "../core/index.ts"

const documentsMax = 10_000
const limit = { type: ["integer", "null"], minimum: 1 }

const schema = {
  type: "object",
  required: ["model", "query", "documents"],
  properties: {
    model: { type: "string" },
    query: { type: "string", minLength: 1 },
    documents: {
      type: "array",
      minItems: 1,
      maxItems: documentsMax,
      items: { type: ["string", "object"], required: ["text"], properties: { text: { type: "string" } } },
    },
    top_n: limit,
    top_k: limit,
    return_documents: { type: ["boolean", "null"] },
  },
} as const

export default {
  name: "rerank",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/rerank/",
      access: "key",
      dialect: "openai",
      model: "body",
      accepts: {
        types: ["rerank"],
        servedBy: adapter => adapter.rerank !== undefined,
        otherwise: { code: "model_not_found", message: "Model 'X' not found" },
      },
      charge: "usage",
      limit: "common",
      schema,
      counts: { input: tokensOf, documents: body => listed(body.json().documents) },
      async handle(call) {
        const sent = (await call.body()).json()
        const request = requestOf(sent)
        const { model } = call.get("model")
        return call.exchange((target): Draft => {
          const spoke = spokeOf(host.adapterOf(target.vendor), "rerank")
          const context = spokeContext(host, model, target)
          return sendDraft(spoke.api, spoke.request(request, context), answer => ({
            object: "list",
            model: model.name,
            ...answerOf(spoke.whole(answer, context), request, {
              id: call.id,
              tokens: call.find("quote")?.counted.input ?? 0,
              withTexts: sent.return_documents === true,
            }),
          }))
        })
      },
    })
  },
} satisfies Plugin

/** Each document is read together with the query, and vendors count it as often (Voyage says so; vLLM counts pairs). */
const tokensOf = (body: Body): number => {
  const { query, documents } = body.json()
  const more = Math.max(0, listed(documents) - 1) * Buffer.byteLength(String(query))
  return estimatedInput({ ...body.scan, textBytes: body.scan.textBytes + more })
}

const listed = (documents: unknown): number => (Array.isArray(documents) ? documents.length : 0)

/** Names of the route itself; every other field is the vendor's business. */
const own: ReadonlySet<string> = new Set(["model", "documents", "top_n", "top_k", "return_documents"])

/** @throws GatewayError `invalid_request` (400): two limits that disagree */
export const requestOf = (sent: JsonObject): RerankRequest => {
  const documents = (sent.documents as readonly (string | { readonly text: string })[]).map(one =>
    typeof one === "string" ? one : one.text,
  )
  const most = limitOf(sent)
  const extra = Object.fromEntries(Object.entries(sent).filter(([name]) => !own.has(name)))
  return {
    ...extra,
    query: sent.query as string,
    documents,
    ...(most === undefined ? {} : { top_n: Math.min(most, documents.length) }),
  }
}

/** Two names of one thing: Cohere's and Voyage's. */
const limitOf = ({ top_n, top_k }: JsonObject): number | undefined => {
  if (typeof top_n === "number" && typeof top_k === "number" && top_n !== top_k) {
    throw new GatewayError("invalid_request", "'top_n' and 'top_k' mean the same and differ", { param: "top_k" })
  }
  return [top_n, top_k].find(value => typeof value === "number") as number | undefined
}

interface Shape {
  readonly id: string
  /** Told where the vendor counts none. */
  readonly tokens: number
  readonly withTexts: boolean
}

/**
 * The answer for the client: best first, no more than asked for, texts from the request itself.
 *
 * @throws GatewayError `upstream_unreadable` (502): a result that points at no document, or twice at one
 */
export const answerOf = (
  answer: RerankAnswer,
  { documents, top_n }: RerankRequest,
  { id, tokens: estimated, withTexts }: Shape,
) => {
  const results = [...answer.results].sort((one, other) => other.relevance_score - one.relevance_score)
  const pointed = new Set(results.map(result => result.index))
  if (pointed.size !== results.length || [...pointed].some(index => documents[index] === undefined)) {
    throw unreadable()
  }
  const told = ({ index, relevance_score }: RerankResult) => ({
    index,
    relevance_score,
    ...(withTexts ? { document: { text: documents[index] } } : {}),
  })
  const { totalTokens, searchUnits } = answer
  const tokens = totalTokens === undefined ? {} : { total_tokens: totalTokens }
  const units = searchUnits === undefined ? {} : { search_units: searchUnits }
  return {
    id: answer.id ?? id,
    results: results.slice(0, top_n).map(told),
    usage: { total_tokens: totalTokens ?? estimated },
    meta: { billed_units: { ...units, ...tokens } },
  }
}
