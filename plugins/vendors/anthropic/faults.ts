/** What errors mean on the Messages wire. */

import type { Fault } from "../../../core/index.ts"
import { type AnswerHeaders, type FaultWord, faultOf, kindOf, retryAfterMs } from "../common/faults.ts"
import { type JsonObject, parse, record, text } from "../common/json.ts"

/** `error.type` and the status that the vendor documents for it. */
const words: Readonly<Record<string, FaultWord>> = {
  invalid_request_error: ["invalid", 400],
  authentication_error: ["account", 401],
  billing_error: ["account", 402],
  permission_error: ["account", 403],
  not_found_error: ["not_found", 404],
  conflict_error: ["invalid", 409],
  request_too_large: ["too_large", 413],
  rate_limit_error: ["rate_limited", 429],
  api_error: ["server", 500],
  timeout_error: ["timeout", 504],
  overloaded_error: ["overloaded", 529],
}

/** `details.error_code` of limits that our account has reached; waiting does not help. */
const accountCodes: ReadonlySet<string> = new Set(["enforced_spend_limit_reached", "contract_spend_limit_reached"])

/**
 * The same told as a 400, in words only. Anchored, because other texts quote the client (an unknown beta value, say), who
 * must not be able to take our key out of rotation.
 */
const accountText =
  /^(?:your credit balance is too low|(?:you have|your \w+ has) (?:reached|exceeded) [^`'"]{0,60}limit)/i

interface Told {
  readonly type: string
  readonly message: string
  readonly code: string
}

export const fault = (status: number, body: Buffer, headers: AnswerHeaders): Fault => {
  const told = toldBy(parse(body))
  return faultOf({
    kind: isAccount(told) ? "account" : kindOf(status),
    status,
    message: told.message,
    retryAfterMs: retryAfterMs(headers),
  })
}

/** An `error` event inside a 200. */
export const eventFault = (event: JsonObject): Fault => {
  const told = toldBy(event)
  const [kind, status] = (Object.hasOwn(words, told.type) ? words[told.type] : undefined) ?? (["server", 502] as const)
  return faultOf({ kind: isAccount(told) ? "account" : kind, status, message: told.message })
}

const isAccount = ({ type, message, code }: Told): boolean =>
  accountCodes.has(code) ||
  ((type === "invalid_request_error" || type === "rate_limit_error") && accountText.test(message))

/** `{type: "error", error: {type, message, details}}`; proxies in between answer with a bare text or message. */
const toldBy = (answer: unknown): Told => {
  const root = record(Array.isArray(answer) ? answer[0] : answer)
  const error = typeof root.error === "string" ? { message: root.error } : record(root.error)
  return {
    type: text(error.type) ?? "",
    message: text(error.message) ?? text(root.message) ?? text(root.detail) ?? "",
    code: text(record(error.details).error_code) ?? "",
  }
}
