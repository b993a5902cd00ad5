/** A messages call to a model of another family: through the hub to the vendor's own wire, and back. */

import {
  type Adapter,
  answerId,
  type Call,
  type ChatAnswer,
  type ChatContext,
  type ChatRequest,
  type ChatSpoke,
  type ChatStream,
  createdNow,
  type Draft,
  exactJson,
  failedMidway,
  faultCodes,
  type Host,
  hubDraft,
  isBlank,
  isDone,
  isObject,
  list,
  record,
  type StreamEvent,
  signatureStore,
  spokeContext,
  spokeOf,
  type Target,
  text,
} from "../../core/index.ts"
import { type AnswerHead, chatRequest, MessageEvents, sentCallId, stopsBeyond, wholeMessage } from "./hub/index.ts"

/** @throws GatewayError what the hub, or the vendor's spoke, cannot express (400, 422) */
export const translatedDraft = async (host: Host, call: Call, target: Target): Promise<Draft> => {
  const { model } = call.get("model")
  const adapter = host.adapterOf(target.vendor)
  const spoke = spokeOf(adapter, "chat")
  const asked = record(exactJson((await call.body()).bytes.toString(), ["input"]))
  const request = chatRequest(asked, model)
  const context: ChatContext = {
    ...spokeContext(host, model, target),
    id: answerId("chatcmpl-", call),
    created: createdNow(host),
    includeUsage: true,
    ...(spoke.stream === undefined ? {} : await kept(signatureStore(host, call), request)),
  }
  const head = {
    id: answerId("msg_", call),
    model: model.name,
    estimatedInput: call.find("quote")?.estimated.input ?? 0,
    stops: stopsBeyond(asked, model),
  }
  return draftOf(request, { adapter, spoke, context, head })
}

const kept = async (signatures: ReturnType<typeof signatureStore>, request: ChatRequest) => ({
  signatures: await signatures.find(request),
  // By the id under which the next turn will name the call.
  keep: (toolCallId: string, signature: string) => signatures.keep(sentCallId(toolCallId), signature),
})

interface Way {
  readonly adapter: Adapter
  readonly spoke: ChatSpoke
  readonly context: ChatContext
  readonly head: AnswerHead
}

const draftOf = (request: ChatRequest, way: Way): Draft => {
  const { adapter, spoke, context, head } = way
  const { base, memo } = hubDraft(spoke, request, context, changed => draftOf(changed, way))
  if (request.stream !== true) {
    const answer = (whole: Buffer) => ({ body: JSON.stringify(wholeMessage(spoke.whole(whole, context, memo), head)) })
    return { ...base, verb: "send", streamed: false, answer }
  }
  const chunks = spoke.stream?.(context, memo) ?? parsedChunks(adapter, spoke.api)
  const events = new MessageEvents(head)
  const written = (some: readonly ChatAnswer[]): string => some.map(chunk => events.push(chunk)).join("")
  return {
    ...base,
    verb: "stream",
    streamed: true,
    ping: 'event: ping\ndata: {"type": "ping"}\n\n',
    push: event => written(chunks.push(event)),
    end: () => written(chunks.end()) + events.end(),
  }
}

const errorKey = Buffer.from('"error"')

/** Some vendors send `[DONE]` without any finish reason. */
const ended: ChatAnswer = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }

/** Chunks of vendors that speak the hub's own wire. */
const parsedChunks = (adapter: Adapter, api: string): ChatStream => {
  let isFinished = false
  return {
    push(event) {
      if (isBlank(event.data)) return []
      if (isDone(event.data)) return isFinished ? [] : [ended]
      const chunk: unknown = JSON.parse(event.data.toString())
      if (event.data.includes(errorKey)) checkFault(adapter, api, event)
      if (!isObject(chunk)) return []
      isFinished ||= text(record(list(chunk.choices)[0]).finish_reason) !== undefined
      return [chunk]
    },
    end: () => [],
  }
}

/** Where an error stands in a chunk the adapter knows. */
const checkFault = (adapter: Adapter, api: string, event: StreamEvent): void => {
  const sign = adapter.apis[api]?.sign(event)
  if (sign?.sign === "fault") throw failedMidway(faultCodes[sign.fault.kind])
}
