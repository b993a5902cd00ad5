/** The manner of vendors that say no more than a status and a sentence. */

import { text } from "./json.ts"
import type { Manner, RefusalKind } from "./wire.ts"

const statuses: Readonly<Record<RefusalKind, number>> = {
  unauthenticated: 401,
  bad_json: 400,
  invalid: 400,
  not_found: 404,
  rate_limited: 429,
  server: 500,
}

/** @param field where the sentence stands: `message` or `detail` */
export const bearer = (field: "message" | "detail"): Manner => ({
  key: headers => /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? text(headers["x-api-key"]),
  error: ({ kind, message }, requestId) => ({
    status: statuses[kind],
    body: field === "message" ? { id: requestId, message } : { detail: message },
  }),
  fields: requestId => ({ "x-request-id": requestId }),
})
