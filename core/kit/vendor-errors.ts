/** What a client reads when a vendor's answer fails: one wording for each way, whoever notices it. */

import type { Fault } from "../adapter.ts"
import { type ErrorCode, type ErrorOptions, GatewayError, retryAfter } from "../errors.ts"

/** `upstream_unreadable` (502): the answer is not what its wire promises. @param cause for the log only */
export const unreadable = (cause?: unknown): GatewayError =>
  new GatewayError("upstream_unreadable", "The model's vendor gave an answer that cannot be read.", { cause })

/** `upstream_unavailable` (502): the stream ended, the answer did not. */
export const endedEarly = (): GatewayError =>
  new GatewayError("upstream_unavailable", "The model's vendor ended the answer too early.")

/** The vendor told a fault in its answer whose words are no business of the client. */
export const failedMidway = (code: ErrorCode = "upstream_unavailable"): GatewayError =>
  new GatewayError(code, "The model's vendor failed while it was answering.")

/** What an error that stands for a vendor's fault carries beside its words: how long to wait, the field, the reason. */
export const faultOptions = ({ kind, param, reason, retryAfterMs = 0 }: Fault): ErrorOptions => ({
  ...(kind === "rate_limited" ? { headers: retryAfter(retryAfterMs) } : {}),
  ...(param === undefined ? {} : { param }),
  ...(reason === undefined ? {} : { reason }),
})
