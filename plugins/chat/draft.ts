/** One chat request for one target: the vendor's request, and the way back to the hub's answer. */

import {
  type Adapter,
  type ChatContext,
  type ChatRequest,
  type ChatSpoke,
  type Draft,
  GatewayError,
  withoutEffort,
} from "../../core/index.ts"
import { ByteChunks, doneEvent } from "./chunks.ts"

/** A comment, which clients of event streams pass over. */
const ping = ": keep-alive\n\n"

/** What an answer's translation reports to the store. */
export type MakeContext = () => ChatContext

/**
 * @param makeContext called once per try: a second try keeps nothing of the first
 * @throws GatewayError when the vendor has no chat
 */
export const chatDraft = (adapter: Adapter, request: ChatRequest, makeContext: MakeContext): Draft => {
  const spoke = adapter.chat
  if (spoke === undefined)
    throw new GatewayError("internal", "Internal error", { cause: `${adapter.name} has no chat` })
  const context = makeContext()
  const { path, body, headers, memo } = spoke.request(request, context)
  const base = {
    api: spoke.api,
    path,
    body: JSON.stringify(body),
    ...(headers === undefined ? {} : { headers }),
    retry: (fault: { readonly message: string; readonly param?: string }) => {
      const changed = withoutEffort(request, context.rules, fault)
      return changed === undefined ? undefined : chatDraft(adapter, changed, makeContext)
    },
  }
  if (request.stream === true)
    return { ...base, verb: "stream", streamed: true, ping, ...streamed(adapter, spoke, { request, context, memo }) }
  return {
    ...base,
    verb: "send",
    streamed: false,
    answer: answer => ({ body: JSON.stringify({ ...spoke.whole(answer, context, memo), model: context.model.name }) }),
  }
}

interface Asked {
  readonly request: ChatRequest
  readonly context: ChatContext
  readonly memo: unknown
}

const streamed = (adapter: Adapter, spoke: ChatSpoke, { request, context, memo }: Asked) => {
  const { model, includeUsage } = context
  const stream = spoke.stream?.(context, memo)
  if (stream === undefined) {
    const api = adapter.apis[spoke.api]!
    const choices = typeof request.n === "number" ? request.n : 1
    const chunks = new ByteChunks({ api, model: model.name, includeUsage, choices, watch: spoke.watch?.(context) })
    return { push: chunks.push.bind(chunks), end: chunks.end.bind(chunks) }
  }
  const written = (chunks: readonly Readonly<Record<string, unknown>>[]): string =>
    chunks.map(chunk => `data: ${JSON.stringify({ ...chunk, model: model.name })}\n\n`).join("")
  return {
    push: (event: Parameters<typeof stream.push>[0]) => written(stream.push(event)),
    end: () => written(stream.end()) + doneEvent,
  }
}
