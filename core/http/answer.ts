/** What an attempt is made of, how its answer reaches the client, and what is read off a vendor's head. */

import type { Adapter, Api, Dialect, Fault, Framing } from "../adapter.ts"
import { type GatewayError, isGatewayError } from "../errors.ts"
import { unreadable } from "../kit/vendor-errors.ts"
import type { Secret, Target, Vendor } from "../offer.ts"
import type { Attempt, Clock, Draft, Outcome } from "../plugin.ts"
import type { AttemptMetrics } from "./attempt-metrics.ts"
import type { Verdict } from "./breaker.ts"
import type { GatewayCall } from "./call.ts"
import type { Deadlines } from "./deadlines.ts"
import type { Drains } from "./drains.ts"
import type { FieldFilter } from "./fields.ts"
import type { Fields } from "./upstream.ts"

/** What a failed attempt leaves: an error of ours, or the vendor's own answer, to be passed on by a relay. */
export interface Failure {
  readonly attempt: Attempt
  readonly error?: GatewayError
  readonly fault?: Fault
  readonly raw?: { readonly status: number; readonly fields: Fields; readonly body: Buffer }
}

/** `verdict`: what an answer that was begun tells of its secret. */
export type Result = { readonly outcome: Outcome; readonly verdict: Verdict } | { readonly failure: Failure }

export interface AttemptParts {
  readonly call: GatewayCall
  readonly draft: Draft
  readonly target: Target
  readonly vendor: Vendor
  readonly secret: Secret
  readonly adapter: Adapter
  readonly api: Api
  readonly filter: FieldFilter
  /** The attempts before this one. */
  readonly before: readonly Attempt[]
  readonly drains: Drains
  readonly clock: Clock
  readonly deadlines: Deadlines
  /** How a stream that fails midway tells its client. */
  readonly dialect: Dialect
  readonly metrics: AttemptMetrics
}

/** How an answer reaches the client. */
export interface Answer {
  /** The head is out: there is no other attempt. */
  readonly sent: boolean
  /** Bytes for the client, after the meter read them; before it, where they keep their vendor's coding. */
  data(chunk: Buffer): void
  /** The meter read on in bytes that the client was given in their coding. */
  read?(): void
  /** What came so far is the client's, before an error ends it. */
  begin?(): void
  /** The vendor's last byte came. `body` is the whole decoded answer. */
  end(body: Buffer): Promise<void>
  /** The vendor died after the head was sent: tells the client as the format allows. */
  cut(error: GatewayError): Promise<void>
  /** The attempt is over. */
  close?(): void
}

/** How the events of an answer are cut; `undefined` for a whole one. */
export const framingOf = (fields: Fields, { verb, streamed }: Draft): Framing | undefined => {
  if (verb === "send") return undefined // a whole answer is translated, whatever the vendor calls it
  const type = String(fields["content-type"] ?? "").toLowerCase()
  if (type.includes("text/event-stream")) return "sse"
  if (!streamed || verb !== "relay") return undefined
  return type.includes("json") ? "json-array" : "sse" // under another name it is what was asked for all the same
}

/** Repeated fields joined, as RFC 9110 section 5.3 allows. */
export const singleFields = (fields: Fields): Record<string, string | undefined> => {
  const out: Record<string, string | undefined> = {}
  for (const name in fields) {
    const value = fields[name]
    out[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return out
}

/**
 * A translation may throw the error that the client should see; anything else is the vendor's nonsense. It is no
 * transport fault: another try would be paid for again, and clients whose requests bring nonsense about must not be
 * able to open the breaker on everyone.
 */
export const asUnreadable = (cause: unknown): GatewayError => (isGatewayError(cause) ? cause : unreadable(cause))
