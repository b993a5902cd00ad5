/** How errors look to clients of the generate-content SDKs. */

import { afterDash, type Dialect, type GatewayError } from "../../../core/index.ts"

const words: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  402: "FAILED_PRECONDITION",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  408: "DEADLINE_EXCEEDED",
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  501: "UNIMPLEMENTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
}

const errorOf = (error: GatewayError) => {
  const { status } = error.kind
  const other = status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT"
  return { code: status, message: afterDash(error.message), status: words[status] ?? other }
}

export const googleDialect: Dialect = {
  name: "google",
  render: error => ({ detail: error.detail, error: errorOf(error) }),
  streamError: error => `data: ${JSON.stringify({ error: errorOf(error) })}\r\n\r\n`,
  /** The vendor's SDK sends the key here and nowhere else. */
  keyHeaders: ["x-goog-api-key"],
}
