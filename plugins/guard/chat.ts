/** A guard that is an LLM: asked by chat, it answers `safe` or `unsafe` with the codes of what it found. */

import {
  type ChatContext,
  type ChatSpoke,
  GatewayError,
  isObject,
  list,
  type ModerationSpoke,
  record,
  type SpokeRequest,
  text,
} from "../../core/index.ts"
import { verdictOf } from "./categories.ts"

/** A word and some codes. */
const tokensMax = 64

/** Such a model takes the text as the user's turn: its own template says the rest. */
export const guardRequest = (spoke: ChatSpoke, input: unknown, context: ChatContext): SpokeRequest =>
  spoke.request(
    {
      model: context.model.name,
      messages: [{ role: "user", content: contentOf(input) }],
      max_tokens: tokensMax,
      temperature: 0,
    },
    context,
  )

/** @throws GatewayError `invalid_request` (400): more than one text, for a model that judges one in a call */
const contentOf = (input: unknown): unknown => {
  if (!Array.isArray(input)) return input
  if (input.every(isObject)) return input
  if (input.length === 1) return input[0]
  throw new GatewayError("invalid_request", `This model judges one text in a call, ${input.length} were sent`, {
    param: "input",
  })
}

export const guardAnswer = (
  spoke: ChatSpoke,
  body: Buffer,
  context: ChatContext,
  memo: unknown,
): ReturnType<ModerationSpoke["whole"]> => {
  const answer = spoke.whole(body, context, memo)
  const { content } = record(record(list(answer.choices)[0]).message)
  return { results: [verdictOf(text(content) ?? "")] }
}
