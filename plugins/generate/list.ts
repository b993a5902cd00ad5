/** The family's own model list, paged by an opaque token. */

import { GatewayError, invalidInput, type Model } from "../../core/index.ts"

export const family = "google"

const sizes = { default: 50, max: 1000 }

/** What may be called on the generate route. */
export const generateModels = (models: readonly Model[]): readonly Model[] =>
  models.filter(model => model.type === "llm" && model.family === family)

/** One page; the token names the last model that was seen, so that a changed list skips nothing. */
export const pageOf = (models: readonly Model[], query: URLSearchParams) => {
  const size = sizeOf(query)
  const from = startOf(models, query.get("pageToken"))
  const page = models.slice(from, from + size)
  const last = page.at(-1)
  return {
    models: page.map(entryOf),
    ...(from + size < models.length && last !== undefined ? { nextPageToken: tokenOf(last.name) } : {}),
  }
}

/** Larger sizes are cut, as the vendor does. */
const sizeOf = (query: URLSearchParams): number => {
  const text = query.get("pageSize")
  if (text === null || text === "" || text === "0") return sizes.default
  if (/^\d{1,9}$/.test(text)) return Math.min(Number(text), sizes.max)
  throw invalidInput(["query", "pageSize"], "Input should be a valid integer", "int_parsing", text)
}

const tokenOf = (name: string): string => Buffer.from(name).toString("base64url")

const startOf = (models: readonly Model[], token: string | null): number => {
  if (token === null || token === "") return 0
  const at = models.findIndex(model => tokenOf(model.name) === token)
  if (at !== -1) return at + 1
  throw new GatewayError("invalid_request", "The page token is not valid", { param: "pageToken" })
}

const entryOf = ({ name, description, contextWindow, maxOutput }: Model) => ({
  name: `models/${name}`,
  baseModelId: name,
  version: "001",
  displayName: name,
  ...(description === undefined ? {} : { description }),
  ...(contextWindow === undefined ? {} : { inputTokenLimit: contextWindow }),
  ...(maxOutput === undefined ? {} : { outputTokenLimit: maxOutput }),
  supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
})
