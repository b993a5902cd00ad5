/** Exa: `POST /search`, `/contents` and `/answer`, each with its cost. */

import type { JsonObject } from "../../core/index.ts"
import { piecesOf } from "./answer.ts"
import { record, text, texts } from "./json.ts"
import { dataEvent } from "./sse.ts"
import { limitOf, type Manner, Refusal, type RefusalKind, type Wire } from "./wire.ts"

const errors: Readonly<Record<RefusalKind, readonly [status: number, tag: string]>> = {
  unauthenticated: [401, "INVALID_API_KEY"],
  bad_json: [400, "INVALID_REQUEST_BODY"],
  invalid: [400, "INVALID_REQUEST"],
  not_found: [404, "NOT_FOUND"],
  rate_limited: [429, "RATE_LIMITED"],
  server: [500, "INTERNAL_ERROR"],
}

const exa: Manner = {
  key: headers => text(headers["x-api-key"]) ?? /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1],
  error({ kind, message }, requestId) {
    const [status, tag] = errors[kind]
    return { status, body: { requestId, error: message, tag } }
  },
  fields: requestId => ({ "x-request-id": requestId }),
}

/** Dollars. */
const costs = { search: 0.007, page: 0.001, answer: 0.005 }
const defaultResults = 10
const resultsMax = 100
const publishedDate = "2026-01-15T09:30:00.000Z"

export const exaSearch: Wire = {
  method: "POST",
  path: /\/search$/,
  manner: exa,
  answer({ body, id }) {
    const query = queryOf(body)
    const number = Math.min(limitOf(body.numResults ?? defaultResults, "numResults"), resultsMax)
    const contents = record(body.contents)
    const results = Array.from({ length: number }, (_, at) => pageOf(`https://example.com/${at + 1}`, query, contents))
    const pages = body.contents === undefined ? 0 : number * costs.page
    const costDollars = { total: sum(costs.search, pages), search: { neural: costs.search } }
    return { whole: { requestId: id(""), resolvedSearchType: "neural", results, costDollars } }
  },
}

export const exaContents: Wire = {
  method: "POST",
  path: /\/contents$/,
  manner: exa,
  answer({ body, id }) {
    const urls = texts(body.urls ?? body.ids)
    if (urls.length === 0) throw new Refusal("invalid", "urls: expected a list of addresses")
    const found = urls.filter(url => URL.canParse(url))
    const results = found.map(url => pageOf(url, url, body))
    const statuses = urls.map(url =>
      found.includes(url)
        ? { id: url, status: "success", source: "cached" }
        : { id: url, status: "error", error: { tag: "CRAWL_NOT_FOUND", httpStatusCode: 404 } },
    )
    return { whole: { requestId: id(""), results, statuses, costDollars: { total: sum(found.length * costs.page) } } }
  },
}

export const exaAnswer: Wire = {
  method: "POST",
  path: /\/answer$/,
  manner: exa,
  answer({ body, id }) {
    const query = queryOf(body)
    const requestId = id("")
    const answer = `You asked: "${query}". These are the sandbox's own pages, the same each time.`
    const citations = [1, 2].map(at => pageOf(`https://example.com/${at}`, query, body))
    const costDollars = { total: costs.answer }
    if (body.stream !== true) return { whole: { answer, citations, requestId, costDollars } }
    const chunks = piecesOf(answer).map(content => ({ choices: [{ delta: { content } }] }))
    const events = [...chunks, { citations }, { requestId, costDollars }].map(dataEvent)
    return { stream: [...events, "data: [DONE]\n\n"], type: "text/event-stream" }
  },
}

const queryOf = ({ query }: JsonObject): string => {
  const asked = text(query)
  if (asked === undefined || asked === "") throw new Refusal("invalid", "query: expected a text")
  return asked
}

const pageOf = (url: string, query: string, contents: JsonObject) => ({
  id: url,
  url,
  title: `About ${query}`,
  publishedDate,
  author: null,
  ...(contents.text ? { text: `All that is known about ${query}.` } : {}),
  ...(contents.highlights ? { highlights: [query], highlightScores: [0.5] } : {}),
  ...(contents.summary ? { summary: `A page about ${query}.` } : {}),
})

/** Sums of dollars without the dust of binary fractions. */
const sum = (...dollars: readonly number[]): number =>
  Math.round(dollars.reduce((all, one) => all + one, 0) * 1e6) / 1e6
