/** Refusals that are known before the call, and so cost nothing. */

import { GatewayError } from "../../../../core/index.ts"

/** A 400 that names the field at fault. */
export const refuse = (param: string, message: string): GatewayError =>
  new GatewayError("invalid_request", message, { param })

/** A field of value null counts as absent. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null
