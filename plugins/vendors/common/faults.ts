/** What the vendors' errors have in common: kinds by status, waiting times, texts without account data. */

import { type Fault, type FaultKind, faultCodes, faultOptions, GatewayError } from "../../../core/index.ts"

/** Kind and status of an error word (`type`, `code` or `status` of the vendor's error). */
export type FaultWord = readonly [kind: FaultKind, status: number]

export type AnswerHeaders = Readonly<Record<string, string | undefined>>

/** Our account's faults by status, whatever the vendor is; the rest by the meaning of HTTP. 529: Anthropic's overload. */
const kindByStatus: Readonly<Record<number, FaultKind>> = {
  401: "account",
  402: "account",
  403: "account",
  404: "not_found",
  408: "timeout",
  413: "too_large",
  429: "rate_limited",
  503: "overloaded",
  504: "timeout",
  529: "overloaded",
}

export const kindOf = (status: number): FaultKind =>
  kindByStatus[status] ?? (status >= 400 && status < 500 ? "invalid" : "server")

/** Said instead of the vendor's text where that is no business of the client, or where there is none. */
const ownText: Readonly<Record<FaultKind, string>> = {
  account: "The model is not available at the moment",
  invalid: "The model's vendor refused the request",
  not_found: "The model's vendor does not know what was asked for",
  too_large: "The request is too large for the model's vendor",
  content_policy: "The request was refused by the vendor's content policy",
  rate_limited: "The model is in high demand; try again later",
  overloaded: "The model is overloaded; try again later",
  server: "The model's vendor failed to answer",
  timeout: "The model's vendor did not answer in time",
}

const clientFaults: ReadonlySet<FaultKind> = new Set(["invalid", "not_found", "too_large", "content_policy"])

export interface FaultParts {
  readonly kind: FaultKind
  readonly status: number
  readonly message?: string | undefined
  readonly param?: string | undefined
  readonly reason?: string | undefined
  readonly retryAfterMs?: number | undefined
}

/** Only a client's fault keeps the vendor's words. */
export const faultOf = ({ kind, status, message, param, reason, retryAfterMs }: FaultParts): Fault => {
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  if (!clientFaults.has(kind)) return { kind, status, message: ownText[kind], ...wait }
  const told = clean(message ?? "")
  return {
    kind,
    status,
    message: told === "" ? ownText[kind] : told,
    ...(param === undefined ? {} : { param: clean(param) }),
    ...(reason === undefined ? {} : { reason: clean(reason) }),
    ...wait,
  }
}

/** Thrown by translations that find a fault inside a 200. The vendor's own wait, else the shortest. */
export const faultError = (fault: Fault): GatewayError =>
  new GatewayError(faultCodes[fault.kind], fault.message, faultOptions(fault))

const messageMax = 2_000

/**
 * Addresses, ids of accounts and projects, pieces of keys: what a vendor may say of us in an error text. Ids are told from
 * words (`user-defined`) by a digit or capital. Repetitions are bounded, so that no text takes long.
 */
const accountData = [
  /\b(?:https?|wss?):\/\/[^\s"'<>]+/gi,
  /\b(?:org|proj|user|acct|wrkspc|workspace)[-_](?=[a-z_-]{0,40}[0-9A-Z])[A-Za-z0-9_-]{6,}/g,
  /\bprojects?[/ ]\d{6,}/gi,
  /\bBearer\s+\S+/gi,
  /\b(?:sk|pk|rk|xai|gsk|pplx)-(?=[a-z_.-]{0,40}[0-9A-Z*])[A-Za-z0-9_*.-]{3,}/g,
  /\bAIza[A-Za-z0-9_*-]{4,}/g,
  /[^\s*]{0,80}\*{3,}\S{0,80}/g,
]

const clean = (message: string): string =>
  accountData.reduce((cleaned, pattern) => cleaned.replace(pattern, "[removed]"), message.slice(0, messageMax)).trim()

const waitMaxMs = 86_400_000

/**
 * Milliseconds that the vendor asks us to wait: `retry-after-ms`, else `retry-after` in seconds or as a date (RFC 9110
 * section 10.2.3), counted from the answer's own `date`, because an adapter has no clock.
 */
export const retryAfterMs = (headers: AnswerHeaders): number | undefined => {
  const exact = headers["retry-after-ms"]
  const waitMs = exact !== undefined && exact !== "" ? Number(exact) : fromRetryAfter(headers)
  return waitMs !== undefined && waitMs >= 0 ? Math.min(Math.ceil(waitMs), waitMaxMs) : undefined
}

const fromRetryAfter = (headers: AnswerHeaders): number | undefined => {
  const value = headers["retry-after"]?.trim()
  if (value === undefined || value === "") return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1_000
  const wait = Date.parse(value) - Date.parse(headers.date ?? "")
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}
