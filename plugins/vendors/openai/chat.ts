/** Chat completions seen from the hub: the same wire, rewritten by the model's rules. */

import type { ChatContext, ChatRequest, ChatSpoke } from "../../../core/index.ts"
import { answerIn, apiPath, unreadable } from "../common/answers.ts"
import { record } from "../common/json.ts"

export const chatSpoke: ChatSpoke = {
  api: "chat",
  request: (request, context) => ({
    path: `${apiPath(context.vendor)}/chat/completions`,
    body: vendorRequest(request, context),
  }),
  whole: (body, { model }) => ({ ...answerOf(body), model: model.name }),
}

/** Fields that the wire does not know pass too: the vendor takes them, or says that it does not. */
const vendorRequest = (request: ChatRequest, { target, rules }: ChatContext): Record<string, unknown> => {
  const kept = Object.entries(request).filter(([, value]) => value !== undefined)
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
  const answer = answerIn(body)
  if (!Array.isArray(answer.choices)) throw unreadable()
  return answer
}
