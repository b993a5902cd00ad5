/** The manner of Google's generate-content API. */

import { text } from "./json.ts"
import type { Manner, RefusalKind } from "./wire.ts"

const errors: Readonly<Record<RefusalKind, { code: number; status: string; details?: readonly object[] }>> = {
  unauthenticated: { code: 403, status: "PERMISSION_DENIED" },
  bad_json: { code: 400, status: "INVALID_ARGUMENT" },
  invalid: { code: 400, status: "INVALID_ARGUMENT" },
  not_found: { code: 404, status: "NOT_FOUND" },
  rate_limited: {
    code: 429,
    status: "RESOURCE_EXHAUSTED",
    details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "1s" }],
  },
  server: { code: 500, status: "INTERNAL" },
}

export const google: Manner = {
  key: (headers, query) =>
    text(headers["x-goog-api-key"]) ?? query.get("key") ?? /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1],
  error({ kind, message }) {
    const { code, status, details } = errors[kind]
    return { status: code, body: { error: { code, message, status, ...(details === undefined ? {} : { details }) } } }
  },
  fields: () => ({ vary: "Origin, X-Origin, Referer", "x-content-type-options": "nosniff" }),
}
