/** The manner of Anthropic. */

import { text } from "./json.ts"
import type { Manner, RefusalKind } from "./wire.ts"

const errors: Readonly<Record<RefusalKind, { status: number; type: string }>> = {
  unauthenticated: { status: 401, type: "authentication_error" },
  bad_json: { status: 400, type: "invalid_request_error" },
  invalid: { status: 400, type: "invalid_request_error" },
  not_found: { status: 404, type: "not_found_error" },
  rate_limited: { status: 429, type: "rate_limit_error" },
  server: { status: 500, type: "api_error" },
}

export const anthropic: Manner = {
  key: headers => text(headers["x-api-key"]) ?? /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1],
  error({ kind, message }, requestId) {
    const { status, type } = errors[kind]
    return { status, body: { type: "error", error: { type, message }, request_id: requestId } }
  },
  fields: requestId => ({
    "request-id": requestId,
    "anthropic-ratelimit-requests-limit": "4000",
    "anthropic-ratelimit-requests-remaining": "3999",
    "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:00Z",
  }),
}
