/** Chat completions seen from the hub: the same wire, rewritten by the model's rules. */

import {
  apiPath,
  type ChatContext,
  type ChatRequest,
  type ChatSpoke,
  isSet,
  type JsonObject,
  unreadable,
} from "../../../core/index.ts"
import { answerIn } from "../common/answers.ts"
import { faultError } from "../common/faults.ts"
import { record, text } from "../common/json.ts"
import { saidBytes } from "./chat-meter.ts"
import { eventFault, tellsError } from "./faults.ts"
import { withoutLeftOut } from "./left-out.ts"

export const chatSpoke: ChatSpoke = {
  api: "chat",
  request: (request, context) => ({
    path: `${apiPath(context.vendor)}/chat/completions`,
    body: vendorRequest(request, context),
  }),
  whole: (body, { model }) => ({ ...answerOf(body), model: model.name }),
}

/** Fields that the wire does not know pass too: the vendor takes them, or says that it does not. */
const vendorRequest = (request: ChatRequest, { target, rules, vendor }: ChatContext): Record<string, unknown> => {
  const kept = Object.entries(request).filter(([, value]) => value !== undefined)
  const body: Record<string, unknown> = { ...Object.fromEntries(kept), model: target.model }
  const { developer, max_tokens_as } = vendor.options
  if (developer !== true) body.messages = request.messages.map(asSystem)
  renameLimit(body, rules.max_tokens_as ?? text(max_tokens_as))
  // Usage is always asked for; the endpoint takes the chunk out again that the client did not want.
  if (request.stream === true) body.stream_options = { ...record(request.stream_options), include_usage: true }
  else delete body.stream_options
  return withoutLeftOut(body, vendor)
}

/** OpenAI's newer word for instructions. Most vendors of its wire know the older one only, and OpenAI takes both. */
const asSystem = (message: JsonObject): JsonObject =>
  message.role === "developer" ? { ...message, role: "system" } : message

/** Of both names the newer wins: the hold was made by it. */
const renameLimit = (body: Record<string, unknown>, name: string | undefined): void => {
  if (name === undefined) return
  const { max_tokens, max_completion_tokens, ...rest } = body
  const limit = max_completion_tokens ?? rest[name] ?? max_tokens
  delete body.max_tokens
  delete body.max_completion_tokens
  if (isSet(limit)) body[name] = limit
}

/** An error beside nothing that was said is no answer; beside a part of one it is the client's to read. */
const answerOf = (body: Buffer): Record<string, unknown> => {
  const answer = answerIn(body)
  if (tellsError(answer) && saidBytes(answer) === 0) throw faultError(eventFault(answer))
  if (!Array.isArray(answer.choices)) throw unreadable()
  return answer
}
