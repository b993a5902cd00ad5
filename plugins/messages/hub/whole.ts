/** A chat completion as a message. */

import {
  argumentsIn,
  type ChatAnswer,
  isObject,
  type JsonObject,
  list,
  record,
  text,
  unreadable,
} from "../../../core/index.ts"
import { bytesOf, reasoningOf, stopReason, toolName, usageOf, wordsOf } from "./answer.ts"
import { Stops } from "./stops.ts"

export interface AnswerHead {
  /** `msg_...` */
  readonly id: string
  /** The catalog's name. */
  readonly model: string
  /** Stop sequences that the vendor was not told. */
  readonly stops: readonly string[]
  /** In tokens: told where the vendor has not counted. */
  readonly estimatedInput: number
}

/** @throws GatewayError `upstream_unreadable` (502) when the completion holds no choice */
export const wholeMessage = (answer: ChatAnswer, head: AnswerHead): JsonObject => {
  const { id, model, stops, estimatedInput } = head
  const [choice] = list(answer.choices)
  if (!isObject(choice)) throw unreadable()
  const said = record(choice.message)
  const refusal = text(said.refusal)
  const cut = new Stops(stops)
  const words = text(cut.push(wordsOf(said.content) ?? "") + cut.flush())
  const { matched } = cut
  const called = matched === undefined ? list(said.tool_calls) : []
  const calls = called.map((call, at) => toolUse(record(call), `toolu_${id}_${at}`))
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [...thoughts(reasoningOf(said)), ...texts(words), ...texts(refusal), ...calls],
    stop_reason: stopReason(choice.finish_reason, {
      matched,
      hasCalls: calls.length > 0,
      hasRefusal: refusal !== undefined,
    }),
    stop_sequence: matched ?? null,
    usage: usageOf(record(answer.usage), estimatedInput, bytesOf(said)),
  }
}

/** Nobody but the family's own vendor signs; an unsigned thought is left out when it comes back. */
const thoughts = (reasoning: string | undefined): readonly JsonObject[] =>
  reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning, signature: "" }]

/** Without text there is no block: some clients fail on an empty one. */
const texts = (told: string | undefined): readonly JsonObject[] =>
  told === undefined ? [] : [{ type: "text", text: told }]

const toolUse = (call: JsonObject, otherwise: string): JsonObject => {
  const { name, arguments: written } = record(call.function)
  return { type: "tool_use", id: text(call.id) ?? otherwise, name: toolName(name), input: argumentsIn(written) }
}
