/** What errors mean on the OpenAI wires: envelopes of OpenAI itself and of the many vendors that speak like it. */

import { type Fault, isSet } from "../../../core/index.ts"
import { type AnswerHeaders, type FaultWord, faultOf, kindOf, retryAfterMs } from "../common/faults.ts"
import { type JsonObject, list, parse, record, text } from "../common/json.ts"
import { faultWord } from "./fault-words.ts"

/**
 * Some vendors of this wire tell a bad key of ours only in the text of a 400. Only its first words count: further on a
 * text may quote the client, who must not be able to take our key out of rotation.
 */
const keyFault = /^(?:(?:incorrect|invalid) api[ _]key|api key (?:not valid|expired)|insufficient balance)/i

interface Told {
  readonly message?: string | undefined
  readonly type?: string | undefined
  readonly code?: string | undefined
  readonly param?: string | undefined
  /** An HTTP status where a code should be (OpenRouter, Google's compatible endpoint). */
  readonly status?: number | undefined
}

export const fault = (status: number, body: Buffer, headers: AnswerHeaders): Fault => {
  const told = toldBy(parse(body))
  const [word] = wordOf(told) ?? []
  const byStatus = kindOf(status)
  const isAccount = byStatus === "account" || word === "account" || (status < 500 && keyFault.test(told.message ?? ""))
  return faultOf({
    kind: isAccount ? "account" : refines(word, byStatus) ? word : byStatus,
    status,
    message: told.message,
    param: told.param,
    reason: told.code ?? undefined,
    retryAfterMs: retryAfterMs(headers),
  })
}

/**
 * Does an answer, or a chunk of one, inside a 200 tell an error? Some vendors wrap theirs: Groq as it wraps its usage,
 * MiniMax in a `base_resp` that every answer has, with 0 for success.
 */
export const tellsError = (answer: JsonObject): boolean =>
  isSet(answer.error) || isSet(record(answer.x_groq).error) || baseResponse(answer) !== undefined

const baseResponse = ({ base_resp }: JsonObject): JsonObject | undefined => {
  const { status_code, status_msg } = record(base_resp)
  return typeof status_code === "number" && status_code !== 0
    ? { code: `base_resp.${status_code}`, message: status_msg }
    : undefined
}

/** The fault of an error inside a 200: its status is that of its word, or the number that stands in its place; else 502. */
export const eventFault = (event: JsonObject): Fault => {
  const told = toldBy(event)
  const [kind, status] = wordOf(told) ?? byNumber(told.status) ?? (["server", 502] as const)
  const isAccount = keyFault.test(told.message ?? "")
  return faultOf({
    kind: isAccount ? "account" : kind,
    status,
    message: told.message,
    param: told.param,
    reason: told.code,
  })
}

/** A word may only tell more than the status does. */
const refines = (word: Fault["kind"] | undefined, byStatus: Fault["kind"]): word is Fault["kind"] =>
  byStatus === "invalid" && (word === "content_policy" || word === "not_found")

const wordOf = ({ code, type }: Told): FaultWord | undefined => faultWord(code) ?? faultWord(type)

const byNumber = (status: number | undefined): FaultWord | undefined =>
  status !== undefined && Number.isInteger(status) && status >= 400 && status < 600
    ? [kindOf(status), status]
    : undefined

/** `{error: {...}}`, `{error: "text"}`, `[{error}]`, `{detail}`, `{message}`, `{response: {error}}`, other wraps, or flat. */
const toldBy = (answer: unknown): Told => {
  const root = record(Array.isArray(answer) ? answer[0] : answer)
  const inner = root.error ?? record(root.response).error ?? record(root.x_groq).error ?? baseResponse(root)
  const error = typeof inner === "string" ? { message: inner } : record(inner ?? root)
  const code = error.code ?? root.code
  const problem = problemOf(root)
  return {
    message: text(error.message) ?? text(error.detail) ?? detailOf(root.detail) ?? text(root.message) ?? problem.msg,
    type: text(error.type) ?? text(error.status),
    code: text(code),
    param: text(error.param) ?? problem.param,
    status: typeof code === "number" ? code : undefined,
  }
}

const detailOf = (detail: unknown): string | undefined => text(detail) ?? text(record(detail).message)

/** The first of the `{loc, msg}` that FastAPI servers write; Mistral wraps the list once more. */
const problemOf = ({ detail, message }: JsonObject) => {
  const [first] = [detail, record(message).detail, message].flatMap(list)
  const { loc, msg } = record(first)
  // Before the field's own path stands where it was found: the body.
  const path = list(loc).slice(1).join(".")
  return { msg: text(msg), param: path === "" ? undefined : path }
}
