/** Answers outside every route (no such path, an ambiguous request, bytes that are none): counted, and told beside the calls. */

import type { IncomingMessage } from "node:http"
import type { GatewayError } from "../errors.ts"
import { cut } from "./clean.ts"
import type { ChildLog } from "./log.ts"
import type { MetricsHub } from "./metrics.ts"

export interface Stray {
  /** `x-request-id` of the answer. */
  readonly id: string
  readonly error: GatewayError
  /** Absent where the bytes made none. */
  readonly request: Pick<IncomingMessage, "method" | "url" | "headers"> | undefined
}

export interface StrayParts {
  readonly metrics: MetricsHub
  readonly log: ChildLog
  /** The names of the plugins that serve now. */
  readonly plugins: () => ReadonlySet<string>
}

/** Writes a line per call; where it is left out, nobody wants lines of less than a call. */
const accessLog = "access-log"
/** What a request line may call itself and still be a label. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
/** No path of a route is as long; what scanners send may be. */
const pathMax = 256
const clientIdMax = 128

export const watchStrays = ({ metrics, log, plugins }: StrayParts): ((stray: Stray) => void) => {
  const requests = metrics.product("http_requests_total")
  const errors = metrics.product("errors_total")
  const lines = log.child({ plugin: accessLog })
  return stray => {
    const { kind } = stray.error
    const method = stray.request?.method ?? "other"
    requests.child("other", methods.has(method) ? method : "other", String(kind.status)).add()
    errors.child("other", kind.label).add()
    if (plugins().has(accessLog)) lines.info(fieldsOf(stray), "refused before any route")
  }
}

/** In the words of the access log; the path stands in place of the route. */
const fieldsOf = ({ id, error, request }: Stray) => ({
  id,
  ...(request === undefined ? {} : requestFields(request)),
  status: error.kind.status,
  outcome: "rejected",
  code: error.code,
  error: error.message,
})

const requestFields = ({ method, url = "", headers }: NonNullable<Stray["request"]>) => {
  const client = headers["x-request-id"]
  return {
    client_request_id: client === undefined ? undefined : String(client).slice(0, clientIdMax),
    method,
    path: pathOf(url),
  }
}

/** Whatever stands behind the path may hold a key. */
const pathOf = (target: string): string => cut(target.replace(/[?#].*$/s, ""), pathMax)
