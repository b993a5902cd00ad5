/** The operator's listener: metrics, liveness, readiness. Never on the public listener. */

import { timingSafeEqual } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Secret } from "../offer.ts"

export interface OpsOptions {
  readonly metrics: { render(): Promise<string>; readonly contentType: string }
  /** What keeps the process from serving now; `undefined` when it serves. */
  readonly unready: () => string | undefined
  /** For `/metrics`; the probes stay open. */
  readonly token: Secret | undefined
}

export interface OpsServer {
  listen(host: string, port: number): Promise<AddressInfo>
  close(): Promise<void>
}

export const createOpsServer = (options: OpsOptions): OpsServer => {
  const pages: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void | Promise<void>>> =
    {
      "/healthz": (_request, response) => answer(response, 200, "ok\n"),
      "/readyz": (_request, response) => {
        const reason = options.unready()
        return reason === undefined ? answer(response, 200, "ready\n") : answer(response, 503, `${reason}\n`)
      },
      "/metrics": async (request, response) => {
        if (!mayScrape(request, options.token)) return answer(response, 401, "a bearer token is required\n")
        answer(response, 200, await options.metrics.render(), options.metrics.contentType)
      },
    }
  const server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 10_000 }, (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? ""
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined
    if (request.method !== "GET" && request.method !== "HEAD") return answer(response, 405, "GET only\n")
    if (page === undefined) return answer(response, 404, "not found\n")
    Promise.resolve(page(request, response)).catch(() => answer(response, 500, "failed\n"))
  })
  server.maxConnections = 100
  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once("error", reject)
        server.listen({ host, port }, () => resolve(server.address() as AddressInfo))
      }),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const mayScrape = (request: IncomingMessage, token: Secret | undefined): boolean => {
  if (token === undefined) return true
  const given = Buffer.from(request.headers.authorization ?? "")
  const wanted = Buffer.from(`Bearer ${token.reveal()}`)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

const answer = (response: ServerResponse, status: number, text: string, type = "text/plain; charset=utf-8"): void => {
  if (response.headersSent) return
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(text),
    "x-content-type-options": "nosniff",
  })
  response.end(text)
}
