/** A whole answer as a chat completion. */

import { type ChatAnswer, type ChatContext, type JsonObject, unreadable } from "../../../../core/index.ts"
import { headOf } from "../../common/answers.ts"
import {
  answersIn,
  type Candidate,
  candidatesOf,
  explained,
  type Finish,
  finishReason,
  type Piece,
  silent,
} from "./candidates.ts"
import { usageOf } from "./tokens.ts"
import { argumentsText, type CallContext, callContext, toolCall } from "./tool-calls.ts"

/** @throws GatewayError the vendor's fault, also inside of a 200; 502 for an answer that says nothing at all */
export const completionOf = (body: Buffer, context: ChatContext, memo: unknown): ChatAnswer => {
  const [answer, ...more] = answersIn(body)
  if (answer === undefined || more.length > 0) throw unreadable()
  const candidates = candidatesOf(answer)
  if (candidates.length === 0) throw unreadable()
  const calls = callContext(context, memo)
  const usage = usageOf(answer.usageMetadata)
  return {
    ...headOf(context, "chat.completion"),
    choices: candidates.map(candidate => choiceOf(candidate, calls)),
    ...(usage === undefined ? {} : { usage }),
  }
}

const choiceOf = (candidate: Candidate, context: CallContext): JsonObject => {
  // The whole answer is here: a candidate without a reason has ended.
  const { finish = silent } = candidate
  const message = messageOf(candidate, finish, context)
  return {
    index: candidate.index,
    message,
    logprobs: candidate.logprobs ?? null,
    finish_reason: finishReason(finish, message.tool_calls !== undefined),
  }
}

const messageOf = ({ pieces }: Candidate, finish: Finish, context: CallContext): JsonObject => {
  const words = joined(pieces, "text")
  const thoughts = joined(pieces, "thought")
  const images = pieces.flatMap(piece => (piece.kind === "image" ? [imageOf(piece.text)] : []))
  const toolCalls = pieces.flatMap(piece =>
    piece.kind === "call" ? [toolCall(piece.call, piece.signature, argumentsText(piece.call), context)] : [],
  )
  const isEmpty = words === "" && images.length === 0 && toolCalls.length === 0
  const { content = words, refusal = null } = isEmpty ? explained(finish) : {}
  return {
    role: "assistant",
    content: content === "" && (toolCalls.length > 0 || refusal !== null) ? null : content,
    refusal,
    ...(thoughts === "" ? {} : { reasoning_content: thoughts }),
    ...(images.length === 0 ? {} : { images }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  }
}

const joined = (pieces: readonly Piece[], kind: "text" | "thought"): string =>
  pieces.flatMap(piece => (piece.kind === kind ? [piece.text] : [])).join("")

/** The form that clients of image-making chat models know. */
export const imageOf = (url: string): JsonObject => ({ type: "image_url", image_url: { url } })
