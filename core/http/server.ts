/** The public listener: refuses what is ambiguous, makes a call of the rest, answers errors, drains. */

import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { Dialect } from "../adapter.ts"
import { GatewayError } from "../errors.ts"
import { Roster } from "../kit/roster.ts"
import { type CallContext, GatewayCall } from "./call.ts"
import { frontCheck } from "./front-check.ts"
import { plain } from "./plain.ts"
import { answersFirst, comesTooLate, endsConnection, expectsContinue, refuse, refuseSocket } from "./refuse.ts"
import { Serving, type ServingParts, type Site } from "./serving.ts"

export interface ServerOptions extends Omit<ServingParts, "onOver"> {
  readonly context: CallContext
  readonly site: () => Site
  readonly connections: number
  readonly onStray: (stray: Stray) => void
}

/** A refusal of what met no route: no call tells of it. */
export interface Stray {
  /** `x-request-id` of the answer. */
  readonly id: string
  readonly error: GatewayError
  /** Absent where the bytes made none. */
  readonly request: IncomingMessage | undefined
}

export interface PublicServer {
  listen(host: string, port: number): Promise<AddressInfo>
  readonly calls: Iterable<GatewayCall> & { readonly size: number }
  /** From now on at most so many open connections. */
  limit(connections: number): void
  /** Refuses new work, waits for the running calls, stops what is left after `ms`. */
  drain(ms: number): Promise<void>
}

const headBytesMax = 16 * 1024
/** Slow senders: headers within 20 s, a whole request within 300 s (threat model, section 5). */
const slow = { headersMs: 20_000, requestMs: 300_000, checkMs: 5_000, keepAliveMs: 65_000 }

export const createPublicServer = (options: ServerOptions): PublicServer => {
  const { context } = options
  const calls = new Roster<GatewayCall>()
  let draining = false
  let onIdle: (() => void) | undefined
  const serving: ServingParts = {
    ...options,
    onOver(call) {
      calls.delete(call)
      if (calls.size === 0) onIdle?.()
    },
  }

  const begin = (request: IncomingMessage, response: ServerResponse): void => {
    const refusal = frontCheck(request) ?? (draining ? drainRefusal() : undefined)
    if (refusal !== undefined) {
      endsConnection(request, response)
      return stray(request, response, refusal)
    }
    const site = options.site()
    const found = site.match(request.method as string, pathOf(request.url as string))
    if (found === undefined) return stray(request, response, new GatewayError("not_found", "Not found"))
    if ("allow" in found) {
      return stray(request, response, notAllowed(found.allow), site.dialect(found.near.route.dialect))
    }
    const call = new GatewayCall(context, found.route, found.params, request, response)
    serve(call, site, response)
  }

  /** The same guards, and the same error answers, until the handler takes the socket. */
  const beginUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on("error", () => {}) // node hands over a bare socket; a reset must not end the process
    if (answersFirst(request, socket)) return
    const site = options.site()
    const refusal = frontCheck(request) ?? (draining ? drainRefusal() : undefined)
    const found = refusal === undefined ? site.matchUpgrade(pathOf(request.url as string)) : undefined
    if (found === undefined || "allow" in found) return strayOn(socket, refusal ?? noUpgrade(request, site), request)
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket as Socket)
    response.once("finish", () => socket.end())
    const call = new GatewayCall(context, found.route, found.params, request, response)
    call.upgraded = { socket, head }
    socket.once("close", () => call.leave())
    serve(call, site, response)
  }

  const stray = (
    request: IncomingMessage,
    response: ServerResponse,
    error: GatewayError,
    dialect: Dialect = plain,
  ): void => {
    const id = randomUUID()
    options.onStray({ id, error, request })
    refuse(request, response, error, dialect, id)
  }

  const strayOn = (socket: Duplex, error: GatewayError, request?: IncomingMessage): void => {
    const id = randomUUID()
    if (refuseSocket(socket, error, id)) options.onStray({ id, error, request })
  }

  const serve = (call: GatewayCall, site: Site, response: ServerResponse): void => {
    calls.add(call)
    new Serving(call, site, response, serving).start()
  }

  const server: Server = createServer({
    maxHeaderSize: headBytesMax,
    requireHostHeader: false, // the front check does
    headersTimeout: slow.headersMs,
    requestTimeout: slow.requestMs,
    connectionsCheckingInterval: slow.checkMs,
    keepAliveTimeout: slow.keepAliveMs,
    noDelay: true,
    // Clients offer other protocols (h2c) beside plain requests; only who asks for a WebSocket wants nothing else.
    shouldUpgradeCallback: request => /^websocket$/i.test(request.headers.upgrade ?? ""),
  })
  server.maxConnections = options.connections
  server.maxHeadersCount = 0 // counted by the front check: node would drop the surplus silently
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (comesTooLate(request, response)) request.resume()
    else begin(request, response)
  })
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    if (comesTooLate(request, response)) return void request.resume()
    expectsContinue(response)
    begin(request, response)
  })
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) =>
    stray(request, response, new GatewayError("expectation_failed", "Only Expect: 100-continue is understood.")),
  )
  server.on("clientError", (error: Error & { code?: string }, socket: Duplex) => strayOn(socket, parserError(error)))
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => {})
    if (answersFirst(request, socket)) return
    strayOn(socket, new GatewayError("not_implemented", "This method is not implemented."), request)
  })
  server.on("upgrade", beginUpgrade)

  return {
    calls,
    limit(connections) {
      server.maxConnections = connections
    },
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once("error", reject)
        server.listen({ host, port }, () => {
          server.off("error", reject)
          resolve(server.address() as AddressInfo)
        })
      }),
    async drain(ms) {
      draining = true
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      server.closeIdleConnections()
      await idleWithin(ms)
      for (const call of calls) call.stopWith(new GatewayError("draining", "The gateway is shutting down."))
      await idleWithin(2_000)
      server.closeAllConnections()
      await closed
    },
  }

  function idleWithin(ms: number): Promise<void> {
    if (calls.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

const pathOf = (target: string): string => {
  const mark = target.indexOf("?")
  return mark === -1 ? target : target.slice(0, mark)
}

const drainRefusal = (): GatewayError =>
  new GatewayError("draining", "The gateway is shutting down. Try again.", { headers: { "retry-after": "1" } })

const notAllowed = (allow: readonly string[]): GatewayError =>
  new GatewayError("method_not_allowed", "Method not allowed", { headers: { allow: allow.join(", ") } })

const parserErrors: Readonly<Record<string, GatewayError>> = {
  HPE_HEADER_OVERFLOW: new GatewayError("fields_too_large", "The header fields are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: new GatewayError("request_timeout", "The request did not arrive in time."),
}

const parserError = (error: { code?: string }): GatewayError =>
  (error.code === undefined ? undefined : parserErrors[error.code]) ??
  new GatewayError("invalid_request", "The request is not valid HTTP.")

const noUpgrade = (request: IncomingMessage, site: Site): GatewayError => {
  const found = site.match("GET", pathOf(request.url ?? "/"))
  return found === undefined
    ? new GatewayError("not_found", "Not found")
    : new GatewayError("upgrade_required", "This path takes plain HTTP requests only.")
}
