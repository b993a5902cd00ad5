/**
 * Models that want the reasoning of an assistant turn back beside its tool calls (rule `reasoning_back`) refuse a turn
 * without it, and most chat clients drop it. So it is kept with the turn's first tool call, and put back where it is
 * missing.
 */

import type { ChatContext, ChatRequest } from "../../../core/index.ts"
import { type Json, list, parse, record, text } from "../common/json.ts"

/** What is larger is not kept: the vendor then says itself what it misses. */
const longest = 64 * 1024

type Message = Readonly<Record<string, unknown>>

/** The messages with the reasoning that the client did not send back. */
export const withReasoning = (
  messages: ChatRequest["messages"],
  { rules, signatures }: Pick<ChatContext, "rules" | "signatures">,
): ChatRequest["messages"] => {
  if (rules.reasoning_back !== true || signatures === undefined) return messages
  return messages.map(message => {
    const kept = isBare(message) ? signatures.get(firstCall(message) ?? "") : undefined
    return kept === undefined ? message : { ...message, reasoning_content: kept }
  })
}

const isBare = ({ role, reasoning_content: reasoning }: Message): boolean =>
  role === "assistant" && (reasoning === undefined || reasoning === null || reasoning === "")

const firstCall = ({ tool_calls }: Message): string | undefined => text(record(list(tool_calls)[0]).id)

/** Gathers the reasoning of an answer, whole or in chunks, and keeps it when its first tool call is known. */
export class ReasoningLog {
  readonly #context: Pick<ChatContext, "keep">
  #reasoning = ""
  #done = false

  constructor(context: Pick<ChatContext, "keep">) {
    this.#context = context
  }

  /** A chunk, or the whole answer; what is no JSON says nothing. */
  read(data: Buffer): void {
    if (this.#done) return
    for (const choice of list(record(parse(data)).choices)) this.#choice(record(choice))
  }

  /** Of several choices the client goes on with one, and nobody knows which: only the first is read. */
  #choice({ index = 0, delta, message }: Json): void {
    if (this.#done || index !== 0) return
    const said = record(delta ?? message)
    this.#reasoning += text(said.reasoning_content) ?? ""
    const id = firstCall(said)
    if (id === undefined) return
    this.#done = true
    if (this.#reasoning !== "" && this.#reasoning.length <= longest) this.#context.keep?.(id, this.#reasoning)
  }
}
