/** Chat completions seen from the hub: the same wire, rewritten by the model's rules. */

import type { ChatContext, ChatRequest, ChatSpoke, EmbeddingsSpoke, Vendor } from "../../../core/index.ts"
import { GatewayError } from "../../../core/index.ts"
import { parse, record } from "../common/json.ts"

/** Fields of the gateway's own, which OpenAI refuses as unknown; other vendors of this wire get them unchanged. */
const gatewayFields: readonly string[] = ["thinking_budget", "thinking_level", "top_k"]

export const chatSpoke: ChatSpoke = {
  api: "chat",
  request: (request, context) => ({
    path: `${apiPath(context.vendor)}/chat/completions`,
    body: vendorRequest(request, context),
  }),
  whole: (body, { model }) => ({ ...answerOf(body), model: model.name }),
}

/** Vendors of this wire keep it below `/v1`, or below the `api_path` of their options (`""` for none). */
const apiPath = ({ options }: Vendor): string => (typeof options.api_path === "string" ? options.api_path : "/v1")

const unreadable = () =>
  new GatewayError("upstream_unavailable", "The model's vendor sent an answer that cannot be read")

const vendorRequest = (request: ChatRequest, { model, target, rules }: ChatContext): Record<string, unknown> => {
  const dropped = new Set(model.family === "openai" ? gatewayFields : [])
  const kept = Object.entries(request).filter(([name, value]) => value !== undefined && !dropped.has(name))
  const body: Record<string, unknown> = { ...Object.fromEntries(kept), model: target.model }
  renameLimit(body, rules.max_tokens_as)
  // Usage is always asked for; the endpoint takes the chunk out again that the client did not want.
  if (request.stream === true) body.stream_options = { ...record(request.stream_options), include_usage: true }
  else delete body.stream_options
  return body
}

/** The client's own value under the newer name wins over the one to be renamed. */
const renameLimit = (body: Record<string, unknown>, name: string | undefined): void => {
  if (name === undefined || name === "max_tokens" || body.max_tokens === undefined) return
  body[name] ??= body.max_tokens
  delete body.max_tokens
}

const answerOf = (body: Buffer): Record<string, unknown> => {
  const answer = record(parse(body))
  if (!Array.isArray(answer.choices)) throw unreadable()
  return answer
}

export const embeddingsSpoke: EmbeddingsSpoke = {
  api: "embeddings",
  request: (request, { target, vendor }) => ({
    path: `${apiPath(vendor)}/embeddings`,
    body: { ...request, model: target.model },
  }),
  whole(body, _request, { model }) {
    const answer = record(parse(body))
    if (!Array.isArray(answer.data)) throw unreadable()
    return { ...answer, model: model.name }
  },
}
