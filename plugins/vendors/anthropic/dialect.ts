/** How errors look to clients of the Messages SDKs. */

import { afterDash, type Dialect, type ErrorCode, type GatewayError } from "../../../core/index.ts"

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  502: "overloaded_error",
  503: "overloaded_error",
  504: "timeout_error",
}

/** A 502 that is no overload. */
const typeByCode: { readonly [Code in ErrorCode]?: string } = {
  upstream_timeout: "timeout_error",
  upstream_account: "api_error",
}

/** What the SDKs act upon: without a thread they send the whole conversation. By the error's `reason`. */
const detailsByReason: Readonly<Record<string, object>> = {
  thread_unsupported_request: { error_code: "thread_unsupported_request", unsupported: ["model"] },
  thread_not_found: { error_code: "thread_not_found" },
}

const errorOf = (error: GatewayError) => {
  const { status } = error.kind
  const other = status >= 500 ? "api_error" : "invalid_request_error"
  const type = typeByCode[error.code] ?? typeByStatus[status] ?? other
  const details = detailsByReason[error.reason ?? ""]
  return { type, message: afterDash(error.message), ...(details === undefined ? {} : { details }) }
}

export const anthropicDialect: Dialect = {
  name: "anthropic",
  render: (error, requestId) => ({
    detail: error.detail,
    type: "error",
    error: errorOf(error),
    request_id: requestId,
  }),
  streamError: (error, requestId) =>
    `event: error\ndata: ${JSON.stringify({ type: "error", error: errorOf(error), request_id: requestId })}\n\n`,
}
