/** One chat request for one target: the vendor's request, and the way back to the hub's answer. */

import {
  type Adapter,
  type ChatContext,
  type ChatRequest,
  type ChatSpoke,
  type Draft,
  hubDraft,
  spokeOf,
} from "../../core/index.ts"
import { ByteChunks } from "./chunks.ts"
import type { Reasoning, ReasoningLog } from "./reasoning.ts"
import { TranslatedChunks } from "./translated.ts"

/** A comment, which clients of event streams pass over. */
const ping = ": keep-alive\n\n"

/** Where a request goes, and who hears of its answer. */
export interface Way {
  readonly adapter: Adapter
  /** Called once per try: a second try keeps nothing of the first. */
  readonly makeContext: () => ChatContext
  /** Only of models that want their reasoning back. */
  readonly reasoning: Reasoning | undefined
}

/** @throws GatewayError what the spoke refuses (400) */
export const chatDraft = (way: Way, request: ChatRequest): Draft => {
  const { adapter, makeContext, reasoning } = way
  const spoke = spokeOf(adapter, "chat")
  const context = makeContext()
  const { base, memo } = hubDraft(spoke, request, context, changed => chatDraft(way, changed))
  const asked: Asked = { adapter, spoke, request, context, memo, log: reasoning?.log(request) }
  return request.stream === true
    ? { ...base, verb: "stream", streamed: true, ping, ...streamed(asked) }
    : { ...base, verb: "send", streamed: false, answer: body => ({ body: whole(asked, body) }) }
}

interface Asked {
  readonly adapter: Adapter
  readonly spoke: ChatSpoke
  readonly request: ChatRequest
  readonly context: ChatContext
  readonly memo: unknown
  readonly log: ReasoningLog | undefined
}

const whole = ({ spoke, context, memo, log }: Asked, body: Buffer): string => {
  const answer = spoke.whole(body, context, memo)
  log?.answer(answer)
  return JSON.stringify({ ...answer, model: context.model.name })
}

const streamed = (asked: Asked) => {
  const { spoke, context, memo } = asked
  const stream = spoke.stream?.(context, memo)
  const chunks = stream === undefined ? bytesOf(asked) : new TranslatedChunks(stream, context)
  return {
    push: chunks.push.bind(chunks),
    counted: chunks.counted.bind(chunks),
    end: chunks.end.bind(chunks),
  }
}

const bytesOf = ({ adapter, spoke, request, context, log }: Asked): ByteChunks => {
  const { model, includeUsage } = context
  const api = adapter.apis[spoke.api]!
  const choices = typeof request.n === "number" ? request.n : 1
  return new ByteChunks({ api, model: model.name, includeUsage, choices, log })
}
