/** The candidates of an answer, or of one chunk, read once for both ways: what each says, calls and ends with. */

import { isSet, type JsonObject, unreadable } from "../../../../core/index.ts"
import { faultError } from "../../common/faults.ts"
import { list, parseExact, record, text } from "../../common/json.ts"
import { eventFault } from "../faults.ts"

/** One part of an answer. Parts of a kind that the hub has no word for are none. */
export type Piece =
  | { readonly kind: "text" | "thought" | "image"; readonly text: string }
  | { readonly kind: "call"; readonly call: JsonObject; readonly signature: string | undefined }

export type FinishReason = "stop" | "length" | "content_filter"

export interface Finish {
  readonly reason: FinishReason
  /** Said when nothing else was: an answer is not empty without a word. */
  readonly explanation?: string
}

export interface Candidate {
  readonly index: number
  readonly pieces: readonly Piece[]
  readonly finish?: Finish
  readonly logprobs?: JsonObject
}

/** @throws GatewayError the vendor's fault, when the answer tells one inside of a 200; 502 when it cannot be read */
export const answersIn = (data: Buffer): readonly JsonObject[] => {
  const parsed = parseExact(data, ["args", "partialArgs"])
  const answers = (Array.isArray(parsed) ? parsed : [parsed]).map(record)
  const failed = answers.find(({ error }) => error !== undefined && error !== null)
  if (failed !== undefined) throw faultError(eventFault(failed))
  if (parsed === undefined) throw unreadable()
  return answers
}

/** A blocked prompt has no candidates: it is told as one that was filtered. */
export const candidatesOf = (answer: JsonObject): readonly Candidate[] => {
  const candidates = list(answer.candidates)
  if (candidates.length > 0) return candidates.map((one, at) => candidateOf(record(one), at))
  const blocked = text(record(answer.promptFeedback).blockReason)
  if (blocked === undefined) return []
  const explanation = `The prompt was blocked by the model's vendor: ${blocked}.`
  return [{ index: 0, pieces: [], finish: { reason: "content_filter", explanation } }]
}

const candidateOf = (candidate: JsonObject, at: number): Candidate => {
  const { index } = candidate
  const reason = text(candidate.finishReason)
  const logprobs = logprobsOf(record(candidate.logprobsResult))
  return {
    index: Number.isSafeInteger(index) && (index as number) >= 0 ? (index as number) : at,
    pieces: list(record(candidate.content).parts).flatMap(part => pieceOf(record(part))),
    ...(reason === undefined ? {} : { finish: finishOf(reason, text(candidate.finishMessage)) }),
    ...(logprobs === undefined ? {} : { logprobs }),
  }
}

// ---- parts ----

const pieceOf = (part: JsonObject): readonly Piece[] => {
  if (isSet(part.functionCall)) {
    return [{ kind: "call", call: record(part.functionCall), signature: text(part.thoughtSignature) }]
  }
  const said = text(part.text)
  if (said !== undefined) return [{ kind: part.thought === true ? "thought" : "text", text: said }]
  const { mimeType, data } = record(part.inlineData)
  const isImage = text(mimeType)?.startsWith("image/") === true && text(data) !== undefined
  return isImage && part.thought !== true ? [{ kind: "image", text: `data:${mimeType};base64,${data}` }] : []
}

// ---- how it ended ----

const ordinary: Readonly<Record<string, FinishReason>> = {
  STOP: "stop",
  MAX_TOKENS: "length",
  FINISH_REASON_UNSPECIFIED: "stop",
  CONTINUATION: "stop",
}

const filtered: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "MODEL_ARMOR",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
  "IMAGE_OTHER",
])

const messageMax = 500

/** An answer that ends as it should, and yet says nothing. */
export const silent: Finish = { reason: "stop", explanation: "The model ended without an answer." }

const finishOf = (reason: string, message: string | undefined): Finish => {
  const known = Object.hasOwn(ordinary, reason) ? ordinary[reason] : undefined
  // A limit explains itself.
  if (known !== undefined) return known === "stop" ? silent : { reason: known }
  const more = message === undefined ? "" : ` ${message.slice(0, messageMax)}`
  if (filtered.has(reason)) {
    return { reason: "content_filter", explanation: `The answer was blocked by the model's vendor: ${reason}.${more}` }
  }
  return { reason: "stop", explanation: `The model ended without an answer: ${reason}.${more}` }
}

/** What is said in place of an answer: only what was filtered is a refusal, for clients end a conversation upon one. */
export const explained = ({
  reason,
  explanation,
}: Finish): { readonly content?: string; readonly refusal?: string } => {
  if (explanation === undefined) return {}
  return reason === "stop" ? { content: explanation } : { refusal: explanation }
}

/** Tools that were called decide, as long as nothing went wrong. */
export const finishReason = ({ reason }: Finish, called: boolean): FinishReason | "tool_calls" =>
  reason === "stop" && called ? "tool_calls" : reason

// ---- log probabilities ----

const logprobsOf = ({ chosenCandidates, topCandidates }: JsonObject): JsonObject | undefined => {
  if (!Array.isArray(chosenCandidates)) return undefined
  const content = chosenCandidates.map((chosen, at) => ({
    ...tokenOf(chosen),
    top_logprobs: list(record(list(topCandidates)[at]).candidates).map(tokenOf),
  }))
  return { content, refusal: null }
}

const tokenOf = (candidate: unknown): JsonObject => {
  const { token, logProbability } = record(candidate)
  const written = text(token) ?? ""
  return {
    token: written,
    logprob: typeof logProbability === "number" ? logProbability : 0,
    bytes: [...Buffer.from(written)],
  }
}
