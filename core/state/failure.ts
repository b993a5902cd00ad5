/** How a store says that it cannot serve, and how it refuses what could never be stored. */

import { GatewayError, isGatewayError } from "../errors.ts"

/** 503 with `retry-after`: never 401, never a free call. */
export const storeUnavailable = (cause: unknown): GatewayError =>
  isGatewayError(cause) ? cause : new GatewayError("store_unavailable", unavailable, { headers: retry, cause })

const unavailable = "The service is temporarily unavailable. Please try again."
const retry = { "retry-after": "1" }

/** Amounts are whole micros that a double holds exactly. @throws RangeError otherwise */
export const checkMicros = (...amounts: readonly number[]): void => {
  for (const micros of amounts) {
    if (!Number.isSafeInteger(micros) || micros < 0) throw new RangeError(`${micros} is not an amount of micros`)
  }
}

/** The most that a member may ever have been granted: sums stay exact. */
export const grantedMax = Number.MAX_SAFE_INTEGER
