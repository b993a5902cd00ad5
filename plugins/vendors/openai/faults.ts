/** What errors mean on the OpenAI wires: envelopes of OpenAI itself and of the many vendors that speak like it. */

import type { Fault } from "../../../core/index.ts"
import { type AnswerHeaders, type FaultWord, faultOf, kindOf, retryAfterMs } from "../common/faults.ts"
import { type Json, list, parse, record, text } from "../common/json.ts"

/** Words of `error.code` and `error.type`, and the status that the vendor documents for them. */
const words: Readonly<Record<string, FaultWord>> = {
  invalid_api_key: ["account", 401],
  authentication_error: ["account", 401],
  account_deactivated: ["account", 401],
  permission_error: ["account", 403],
  unsupported_country_region_territory: ["account", 403],
  insufficient_quota: ["account", 429],
  credit_balance_exhausted: ["account", 429],
  billing_hard_limit_reached: ["account", 400],
  billing_not_active: ["account", 429],
  exceeded_current_quota_error: ["account", 429],
  Arrearage: ["account", 400],
  content_policy_violation: ["content_policy", 400],
  content_filter: ["content_policy", 400],
  moderation_blocked: ["content_policy", 400],
  image_content_policy_violation: ["content_policy", 400],
  bio_policy: ["content_policy", 400],
  misalignment_policy_violation: ["content_policy", 400],
  model_not_found: ["not_found", 404],
  not_found_error: ["not_found", 404],
  previous_response_not_found: ["not_found", 404],
  context_length_exceeded: ["invalid", 400],
  invalid_prompt: ["invalid", 400],
  invalid_image: ["invalid", 400],
  invalid_image_format: ["invalid", 400],
  invalid_base64_image: ["invalid", 400],
  invalid_image_url: ["invalid", 400],
  invalid_image_mode: ["invalid", 400],
  image_too_large: ["invalid", 400],
  image_too_small: ["invalid", 400],
  image_parse_error: ["invalid", 400],
  image_file_too_large: ["invalid", 400],
  image_file_not_found: ["invalid", 400],
  unsupported_image_media_type: ["invalid", 400],
  empty_image_file: ["invalid", 400],
  failed_to_download_image: ["invalid", 400],
  data_residency_mismatch: ["account", 400],
  invalid_request_error: ["invalid", 400],
  rate_limit_exceeded: ["rate_limited", 429],
  rate_limit_error: ["rate_limited", 429],
  requests: ["rate_limited", 429],
  tokens: ["rate_limited", 429],
  vector_store_timeout: ["timeout", 504],
  slow_down: ["overloaded", 503],
  server_is_overloaded: ["overloaded", 503],
  service_unavailable_error: ["overloaded", 503],
  overloaded_error: ["overloaded", 529],
  server_error: ["server", 500],
}

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

/** The fault of an error inside a 200: its status is that of its word, or the number that stands in its place; else 502. */
export const eventFault = (event: Json): Fault => {
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

const wordOf = ({ code, type }: Told): FaultWord | undefined => lookUp(code) ?? lookUp(type)

const lookUp = (word: string | undefined): FaultWord | undefined =>
  word !== undefined && Object.hasOwn(words, word) ? words[word] : undefined

const byNumber = (status: number | undefined): FaultWord | undefined =>
  status !== undefined && Number.isInteger(status) && status >= 400 && status < 600
    ? [kindOf(status), status]
    : undefined

/** `{error: {...}}`, `{error: "text"}`, `[{error}]`, `{detail}`, `{message}`, `{response: {error}}`, or flat fields. */
const toldBy = (answer: unknown): Told => {
  const root = record(Array.isArray(answer) ? answer[0] : answer)
  const inner = root.error ?? record(root.response).error
  const error = typeof inner === "string" ? { message: inner } : record(inner ?? root)
  const code = error.code ?? root.code
  return {
    message: text(error.message) ?? text(error.detail) ?? detailOf(root.detail) ?? text(root.message),
    type: text(error.type) ?? text(error.status),
    code: text(code),
    param: text(error.param),
    status: typeof code === "number" ? code : undefined,
  }
}

/** FastAPI servers: a text, or a list of `{loc, msg}`. */
const detailOf = (detail: unknown): string | undefined =>
  text(detail) ?? text(record(list(detail)[0]).msg) ?? text(record(detail).message)
