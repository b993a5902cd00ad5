/** `GET /v1/models` in the family's own format, paged by ids. */

import { invalidInput, type Model } from "../../core/index.ts"

export const family = "anthropic"

const limits = { default: 20, max: 1000 }

/** What may be called on the messages route: the family's own models first, then those that are translated. */
export const messagesModels = (models: readonly Model[]): readonly Model[] => {
  const texts = models.filter(model => model.type === "llm")
  return [
    ...texts.filter(model => model.family === family),
    ...texts.filter(model => model.family !== family && model.messages),
  ]
}

/** One page. `has_more` looks in the direction of the cursor. */
export const pageOf = (models: readonly Model[], query: URLSearchParams) => {
  const limit = limitOf(query)
  const before = cursor(models, query, "before_id")
  const after = cursor(models, query, "after_id")
  const from = after === undefined ? 0 : after + 1
  const end = before ?? models.length
  const page =
    before === undefined
      ? models.slice(from, from + limit)
      : models.slice(Math.max(from, end - limit), Math.max(from, end))
  const hasMore = before === undefined ? from + limit < end : end - limit > from
  return {
    data: page.map(entryOf),
    has_more: hasMore,
    first_id: page[0]?.name ?? null,
    last_id: page.at(-1)?.name ?? null,
  }
}

const limitOf = (query: URLSearchParams): number => {
  const text = query.get("limit")
  const limit = text === null ? limits.default : /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= limits.max) return limit
  throw invalidInput(["query", "limit"], `Input should be an integer from 1 to ${limits.max}`, "int_parsing", text)
}

const cursor = (models: readonly Model[], query: URLSearchParams, name: string): number | undefined => {
  const id = query.get(name)
  if (id === null) return undefined
  const at = models.findIndex(model => model.name === id)
  if (at !== -1) return at
  throw invalidInput(["query", name], "Input should be the id of a model in this list", "value_error", id)
}

const entryOf = ({ name, created, contextWindow, maxOutput }: Model) => ({
  type: "model",
  id: name,
  display_name: name,
  created_at: new Date(created * 1000).toISOString().replace(".000Z", "Z"),
  ...(contextWindow === undefined ? {} : { max_input_tokens: contextWindow }),
  ...(maxOutput === undefined ? {} : { max_tokens: maxOutput }),
})
