/** What a failed attempt means: for the next try, for the secret's health, and for the client. */

import { type Fault, type FaultKind, faultCodes } from "../adapter.ts"
import { type ErrorCode, GatewayError, retryAfter } from "../errors.ts"
import { failedMidway, faultOptions } from "../kit/vendor-errors.ts"
import type { Secret } from "../offer.ts"
import type { Outcome } from "../plugin.ts"
import type { Failure } from "./answer.ts"
import type { Rest, Verdict } from "./breaker.ts"
import { UpstreamError } from "./upstream.ts"

interface FaultMeaning {
  /** Another secret or target may do better. */
  readonly passing: boolean
  /** The vendor did no work: even what must not be done twice may be sent again. */
  readonly refused?: true
  readonly verdict: Verdict
  /** What the client reads on translated routes; absent: the vendor's own text. */
  readonly text?: string
}

const meanings: Readonly<Record<FaultKind, FaultMeaning>> = {
  account: {
    passing: true,
    refused: true,
    verdict: "account",
    text: "The model's vendor refused the gateway's own account. Tell the operator of this gateway.",
  },
  invalid: { passing: false, verdict: "ok" },
  not_found: { passing: false, verdict: "ok" },
  too_large: { passing: false, verdict: "ok" },
  content_policy: { passing: false, verdict: "ok" },
  rate_limited: {
    passing: true,
    refused: true,
    verdict: "rate_limited",
    text: "The model's vendor is limiting requests. Try again later.",
  },
  overloaded: { passing: true, verdict: "failed", text: "The model's vendor is overloaded. Try again later." },
  server: { passing: true, verdict: "failed", text: "The model's vendor failed. Try again later." },
  timeout: { passing: true, verdict: "failed", text: "The model's vendor did not answer in time." },
}

/** Errors that a translation threw where the vendor told its fault inside a 200. */
const kindByCode: { readonly [Code in ErrorCode]?: FaultKind } = {
  [faultCodes.account]: "account",
  [faultCodes.rate_limited]: "rate_limited",
  [faultCodes.overloaded]: "overloaded",
  [faultCodes.server]: "server",
  [faultCodes.timeout]: "timeout",
}

type Cause = Pick<Failure, "fault" | "error">

const meaningOf = ({ fault, error }: Cause): FaultMeaning | undefined => {
  const kind = fault?.kind ?? (error === undefined ? undefined : kindByCode[error.code])
  return kind === undefined ? undefined : meanings[kind]
}

/** @param repeatable false for a submit: one that may have been received is never sent again */
export const mayPass = (failure: Failure, repeatable: boolean): boolean => {
  const { fault, error } = failure
  if (fault !== undefined) {
    const { passing, refused = false } = meanings[fault.kind]
    return passing && (repeatable || refused)
  }
  if (error instanceof UpstreamError) return repeatable || !error.received
  return repeatable && meaningOf(failure)?.passing === true
}

export const verdictOf = (cause: Cause): Verdict => {
  if (cause.error instanceof UpstreamError) return cause.error.received ? "failed" : "unreachable"
  return meaningOf(cause)?.verdict ?? "unknown"
}

/**
 * Of an answer that was begun. Nonsense, a plugin's fault and a stop of ours tell nothing of the vendor's health: clients
 * whose requests bring them about must not be able to open the breaker on everyone.
 */
export const verdictOfEnd = (
  end: Outcome["end"],
  error: GatewayError | undefined,
  fault: Fault | undefined,
): Verdict => {
  if (end === "delivered") return "ok"
  if (error instanceof UpstreamError && error.ours) return "unknown"
  return end === "broken" ? verdictOf({ ...(error && { error }), ...(fault && { fault }) }) : "unknown"
}

/** The label `reason` of the retry and fallback counters. */
export const reasonOf = (failure: Failure): string => failure.fault?.kind ?? failure.error?.code ?? "other"

/** The gateway's own words for a vendor's fault: what the table has no words for keeps the vendor's text. */
export const errorOf = (fault: Fault): GatewayError => {
  const code = fault.kind === "server" && fault.status === 500 ? "upstream_failed" : faultCodes[fault.kind]
  return new GatewayError(code, meanings[fault.kind].text ?? fault.message, faultOptions(fault))
}

interface Wrong {
  readonly error?: GatewayError | undefined
  readonly fault?: Fault | undefined
}

/** What is told of an attempt that failed, whoever's words the client reads. */
export const errorIn = ({ error, fault }: Wrong): GatewayError | undefined => error ?? (fault && errorOf(fault))

/** Every secret rests: the breaker answers in place of the vendor. */
export const allResting = ({ ms, limited }: Rest): GatewayError =>
  limited
    ? errorOf({ kind: "rate_limited", status: 429, message: "", retryAfterMs: ms })
    : new GatewayError("upstream_unavailable", "The model's vendor is not available. Try again later.", {
        headers: retryAfter(ms),
      })

/** A vendor may echo the credential in its words. */
export const withoutSecret = (error: GatewayError, secret: Secret): GatewayError =>
  textContains(error.message, secret) ? failedMidway("upstream_account") : error

/** Whether a text contains the secret. A vendor that takes none has an empty one. */
export const textContains = (words: string, secret: Secret): boolean => {
  const text = secret.reveal()
  return text !== "" && words.includes(text)
}

/** The same of a body, also where JSON escapes hide letters of the secret: the client's parser would read them back. */
export const bodyContains = (body: Buffer, secret: Secret): boolean => {
  const text = secret.reveal()
  if (text === "") return false
  return body.includes(text) || (body.includes("\\") && unescaped(body.toString("latin1")).includes(text))
}

const unescaped = (text: string): string =>
  text
    .replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll("\\/", "/")
