/** What errors mean on the generate-content wire. */

import type { Fault } from "../../../core/index.ts"
import { type AnswerHeaders, type FaultWord, faultOf, kindOf, retryAfterMs } from "../common/faults.ts"
import { type JsonObject, list, parse, record, text } from "../common/json.ts"

/** `error.status` and the HTTP status that the vendor documents for it. */
const words: Readonly<Record<string, FaultWord>> = {
  INVALID_ARGUMENT: ["invalid", 400],
  OUT_OF_RANGE: ["invalid", 400],
  // The region or the billing of our project.
  FAILED_PRECONDITION: ["account", 400],
  UNAUTHENTICATED: ["account", 401],
  PERMISSION_DENIED: ["account", 403],
  NOT_FOUND: ["not_found", 404],
  RESOURCE_EXHAUSTED: ["rate_limited", 429],
  CANCELLED: ["server", 499],
  INTERNAL: ["server", 500],
  UNAVAILABLE: ["overloaded", 503],
  DEADLINE_EXCEEDED: ["timeout", 504],
}

/** Reasons of `google.rpc.ErrorInfo` that come with a 400 and mean our key. */
const keyReasons: ReadonlySet<string> = new Set(["API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"])
/** At the start only: further on a text may quote the client. */
const keyText = /^api key (?:not valid|not found|expired|invalid)/i

interface Told {
  readonly status: string
  readonly code: number | undefined
  readonly message: string
  readonly isKey: boolean
  readonly retryMs: number | undefined
}

export const fault = (status: number, body: Buffer, headers: AnswerHeaders): Fault => {
  const told = toldBy(parse(body))
  const isAccount = told.isKey || (status === 400 && told.status === "FAILED_PRECONDITION")
  return faultOf({
    kind: isAccount ? "account" : status === 499 ? "server" : kindOf(status),
    status,
    message: told.message,
    // This vendor sets the field rarely and says it in the body instead.
    retryAfterMs: retryAfterMs(headers) ?? told.retryMs,
  })
}

/** An `error` object inside a 200. */
export const eventFault = (event: JsonObject): Fault => {
  const told = toldBy(event)
  const [kind, status] =
    (Object.hasOwn(words, told.status) ? words[told.status] : undefined) ??
    (told.code === undefined ? (["server", 502] as const) : ([kindOf(told.code), told.code] as const))
  return faultOf({
    kind: told.isKey ? "account" : kind,
    status,
    message: told.message,
    retryAfterMs: told.retryMs,
  })
}

/** `{error: {code, message, status, details}}`; the array form of the stream and the compatible endpoint wrap it. */
const toldBy = (answer: unknown): Told => {
  const root = record(Array.isArray(answer) ? answer.at(-1) : answer)
  const error = typeof root.error === "string" ? { message: root.error } : record(root.error)
  const details = list(error.details).map(record)
  const message = text(error.message) ?? text(root.message) ?? ""
  const code = error.code
  return {
    status: text(error.status) ?? "",
    code: Number.isInteger(code) && (code as number) >= 400 && (code as number) < 600 ? (code as number) : undefined,
    message,
    isKey: details.some(detail => keyReasons.has(text(detail.reason) ?? "")) || keyText.test(message),
    retryMs: details.map(detail => seconds(text(detail.retryDelay))).find(wait => wait !== undefined),
  }
}

/** A protobuf duration: `34.4s`. */
const seconds = (duration: string | undefined): number | undefined => {
  const [, number] = /^(\d{1,7}(?:\.\d{1,9})?)s$/.exec(duration ?? "") ?? []
  return number === undefined ? undefined : Math.ceil(Number(number) * 1_000)
}
