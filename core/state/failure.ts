/** How a store says that it cannot serve. */

import { GatewayError, isGatewayError } from "../errors.ts"

/** 503 with `retry-after`: never 401, never a free call. */
export const storeUnavailable = (cause: unknown): GatewayError =>
  isGatewayError(cause) ? cause : new GatewayError("store_unavailable", unavailable, { headers: retry, cause })

const unavailable = "The service is temporarily unavailable. Please try again."
const retry = { "retry-after": "1" }
