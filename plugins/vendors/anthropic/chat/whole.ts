/** A whole answer of the Messages wire as a chat completion. */

import { type ChatAnswer, type ChatContext, unreadable } from "../../../../core/index.ts"
import { headOf, madeCallId } from "../../common/answers.ts"
import { faultError } from "../../common/faults.ts"
import { type JsonObject, list, parseExact, record, text } from "../../common/json.ts"
import { eventFault } from "../faults.ts"
import { chatUsage, finishReason, refusalOf, toolName } from "./answer.ts"
import { keptText } from "./kept.ts"
import type { ChatMemo } from "./memo.ts"

/** @throws GatewayError when the answer is an error, or none that can be read */
export const wholeAnswer = (body: Buffer, context: ChatContext, memo: ChatMemo): ChatAnswer => {
  const message = messageOf(body)
  const blocks = list(message.content).map(record)
  keepThinking(blocks, context, memo)
  const calls = blocks.filter(block => isCall(block, memo)).map((block, at) => callOf(block, at, context, memo))
  return {
    ...headOf(context, "chat.completion"),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: contentOf(blocks, memo) ?? (calls.length > 0 ? null : ""),
          refusal: refusalOf(message.stop_reason, record(message.stop_details)),
          ...reasoningOf(blocks),
          ...(calls.length > 0 ? { tool_calls: calls } : {}),
        },
        logprobs: null,
        finish_reason: finishReason(message.stop_reason, calls.length > 0),
      },
    ],
    usage: chatUsage(record(message.usage)),
  }
}

const messageOf = (body: Buffer): JsonObject => {
  const message = record(parseExact(body, ["input"]))
  if (message.type === "error") throw faultError(eventFault(message))
  if (!Array.isArray(message.content)) throw unreadable()
  return message
}

const isCall = ({ type, name }: JsonObject, { answerTool }: ChatMemo): boolean =>
  type === "tool_use" && name !== answerTool

const callOf = ({ id, name, input }: JsonObject, at: number, context: ChatContext, { names }: ChatMemo) => ({
  id: text(id) ?? madeCallId(context, at),
  type: "function",
  function: { name: toolName(name, names), arguments: JSON.stringify(input ?? {}) },
})

/** Text, and the input of the tool that stands for it. */
const contentOf = (blocks: readonly JsonObject[], { answerTool }: ChatMemo): string | undefined => {
  const texts = blocks.flatMap(({ type, name, text, input }) => {
    if (type === "text" && typeof text === "string") return [text]
    return type === "tool_use" && name === answerTool ? [JSON.stringify(input ?? {})] : []
  })
  return texts.length === 0 ? undefined : texts.join("")
}

const reasoningOf = (blocks: readonly JsonObject[]) => {
  const reasoning = blocks.flatMap(({ type, thinking }) => (type === "thinking" ? (text(thinking) ?? []) : [])).join("")
  return reasoning === "" ? {} : { reasoning_content: reasoning }
}

const isThought = ({ type }: JsonObject): boolean => type === "thinking" || type === "redacted_thinking"

/** What was thought before the first tool call must come back with its result. */
const keepThinking = (blocks: readonly JsonObject[], { keep, target }: ChatContext, memo: ChatMemo): void => {
  const first = blocks.findIndex(block => isCall(block, memo))
  const id = text(blocks[first]?.id)
  if (keep === undefined || id === undefined) return
  const kept = keptText(target.model, blocks.slice(0, first).filter(isThought))
  if (kept !== undefined) keep(id, kept)
}
