/** The only maker of outcomes. */

import type { Target } from "../offer.ts"
import type { Attempt, Billed, Outcome } from "../plugin.ts"
import type { GatewayCall } from "./call.ts"

export type OutcomeFields = Omit<Outcome, keyof { [K in keyof Outcome as K extends symbol ? K : never]: unknown }>

export const makeOutcome = (fields: OutcomeFields): Outcome => fields as Outcome

/** What is logged and counted for a client that left before any head. */
const clientLeft = 499

/** How the last attempt of a call ended, and what that came to. */
export interface Ended {
  readonly end: Outcome["end"]
  /** Of the vendor's head. */
  readonly status: number
  readonly target: Target
  readonly attempts: readonly Attempt[]
  readonly billed: Billed
  readonly streamed: boolean
  readonly firstByteMs: number | undefined
  readonly later: Promise<Billed> | undefined
}

export const outcomeOf = (call: GatewayCall, ended: Ended): Outcome => {
  const { end, status, target, attempts, billed, streamed, firstByteMs, later } = ended
  const { usage, source, micros } = billed
  const outcome: { -readonly [K in keyof OutcomeFields]: OutcomeFields[K] } = {
    end,
    status: call.client.headSent ? status : clientLeft,
    target,
    attempts,
    source,
    bytesOut: call.client.bytesOut,
    upstreamMs: call.upstreamMs,
    streamed,
  }
  if (usage !== undefined) outcome.usage = usage
  if (micros !== undefined) outcome.billedMicros = micros
  if (later !== undefined) outcome.later = later
  if (firstByteMs !== undefined) outcome.firstByteMs = firstByteMs
  return makeOutcome(outcome)
}
