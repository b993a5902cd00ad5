/** Answers outside every route (no such path, an ambiguous request, bytes that are none): counted, and told to plugins. */

import type { IncomingMessage } from "node:http"
import type { GatewayError } from "../errors.ts"
import type { Log, Stray } from "../host.ts"
import { cut } from "./clean.ts"
import type { MetricsHub } from "./metrics.ts"

/** The `onStray` listener of one plugin. */
export interface StrayListener {
  readonly plugin: string
  readonly tell: (stray: Stray) => void
}

export interface StrayParts {
  readonly metrics: MetricsHub
  readonly log: Log
  /** Of the generation that serves now. */
  readonly listeners: () => readonly StrayListener[]
}

/** Methods that may become a label. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
/** No path of a route is as long; what scanners send may be. */
const pathMax = 256

export const watchStrays = ({ metrics, log, listeners }: StrayParts) => {
  const requests = metrics.product("http_requests_total")
  const errors = metrics.product("errors_total")
  return (id: string, error: GatewayError, request: IncomingMessage | undefined): void => {
    const { kind } = error
    const method = request?.method ?? "other"
    requests.child("other", methods.has(method) ? method : "other", String(kind.status)).add()
    errors.child("other", kind.label).add()
    const stray: Stray = request === undefined ? { id, error } : { id, error, request: toldOf(request) }
    for (const { plugin, tell } of listeners()) {
      try {
        tell(stray)
      } catch (err) {
        metrics.product("plugin_errors_total").child(plugin).add()
        log.error({ id, plugin, err }, "a plugin failed over a request that met no route")
      }
    }
  }
}

/** Whatever stands behind the path may hold a key. */
const toldOf = ({ method = "", url = "", headers }: IncomingMessage) => ({
  method,
  path: cut(url.replace(/[?#].*$/s, ""), pathMax),
  headers,
})
