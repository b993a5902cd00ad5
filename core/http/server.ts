/** The public listener: refuses what is ambiguous, makes a call of the rest, answers errors, drains. */

import { randomUUID } from "node:crypto"
import {
  createServer,
  type IncomingMessage,
  type ServerOptions as NodeOptions,
  type Server,
  ServerResponse,
} from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { Dialect } from "../adapter.ts"
import { GatewayError } from "../errors.ts"
import { plain } from "../kit/dialects.ts"
import { Roster } from "../kit/roster.ts"
import { type CallContext, GatewayCall } from "./call.ts"
import { everyHead } from "./fields.ts"
import { frontCheck, unknownMethod } from "./front-check.ts"
import {
  answersFirst,
  comesTooLate,
  endSocket,
  endsConnection,
  expectsContinue,
  lastUploads,
  refuse,
  refuseSocket,
} from "./refuse.ts"
import { Serving, type ServingParts, type Site } from "./serving.ts"

export interface ServerOptions extends Omit<ServingParts, "onOver"> {
  readonly context: CallContext
  readonly site: () => Site
  readonly connections: number
  /** Why no call is served yet. */
  readonly unready: () => GatewayError | undefined
  /** A refusal of what met no route, which no call tells of: with the `x-request-id` of its answer, and the request if it was one. */
  readonly onStray: (id: string, error: GatewayError, request: IncomingMessage | undefined) => void
}

export interface PublicServer {
  listen(host: string, port: number): Promise<AddressInfo>
  readonly calls: Iterable<GatewayCall> & { readonly size: number }
  /** From now on at most so many open connections. */
  limit(connections: number): void
  /** Refuses new work, waits for the running calls, stops what is left after `ms`. */
  drain(ms: number): Promise<void>
}

export const createPublicServer = (options: ServerOptions): PublicServer => new Listener(options)

class Listener implements PublicServer {
  readonly calls = new Roster<GatewayCall>()
  readonly #options: ServerOptions
  readonly #parts: ServingParts
  readonly #server: Server
  #isDraining = false
  #onIdle: (() => void) | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.#parts = { ...options, onOver: call => this.#over(call) }
    this.#server = createServer(nodeOptions)
    this.#server.maxHeadersCount = 0 // counted by the front check: node would drop the surplus silently
    this.limit(options.connections)
    this.#subscribe()
  }

  listen(host: string, port: number): Promise<AddressInfo> {
    const server = this.#server
    return new Promise((resolve, reject) => {
      server.once("error", reject)
      server.listen({ host, port }, () => {
        server.off("error", reject)
        resolve(server.address() as AddressInfo)
      })
    })
  }

  limit(connections: number): void {
    this.#server.maxConnections = connections
  }

  async drain(ms: number): Promise<void> {
    this.#isDraining = true
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    await this.#idleWithin(ms)
    for (const call of this.calls) call.stopWith(drainRefusal())
    await this.#idleWithin(lastAnswersMs)
    await lastUploads() // else their clients would see a broken pipe in place of the answer
    this.#server.closeAllConnections()
    await closed
  }

  #subscribe(): void {
    const server = this.#server
    server.on("request", (request, response) => {
      if (!isLate(request, response)) this.#begin(request, response)
    })
    server.on("checkContinue", (request, response) => {
      if (isLate(request, response)) return
      expectsContinue(response)
      this.#begin(request, response)
    })
    server.on("checkExpectation", (request, response) => {
      if (!isLate(request, response)) this.#stray(request, response, unknownExpectation())
    })
    server.on("upgrade", (request, socket, head) => {
      if (isFree(request, socket)) this.#beginUpgrade(request, socket, head)
    })
    server.on("connect", (request, socket) => {
      if (isFree(request, socket)) this.#strayOn(socket, unknownMethod, request)
    })
    server.on("clientError", (error, socket) => {
      if (!isBehindLast(error)) this.#strayOn(socket, parserError(error), undefined)
    })
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#refusalOf(request)
    if (refusal !== undefined) {
      endsConnection(request, response)
      return this.#stray(request, response, refusal)
    }
    const site = this.#options.site()
    const found = site.match(request.method as string, pathOf(request))
    if (found === undefined) return this.#stray(request, response, notFound())
    if ("allow" in found) {
      return this.#stray(request, response, notAllowed(found.allow), site.dialect(found.near.route.dialect))
    }
    const call = new GatewayCall(this.#options.context, found.route, found.params, request, response)
    this.#serve(call, site, response)
  }

  /** The same guards, and the same error answers, until the handler takes the socket. */
  #beginUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refusal = this.#refusalOf(request)
    const site = this.#options.site()
    const found = refusal === undefined ? site.matchUpgrade(pathOf(request)) : undefined
    if (found === undefined || "allow" in found) {
      return this.#strayOn(socket, refusal ?? noUpgrade(request, site), request)
    }
    const response = responseOn(socket, request)
    const call = new GatewayCall(this.#options.context, found.route, found.params, request, response)
    call.upgraded = { socket, head }
    socket.once("close", () => call.leave())
    this.#serve(call, site, response)
  }

  #refusalOf(request: IncomingMessage): GatewayError | undefined {
    return frontCheck(request) ?? (this.#isDraining ? drainRefusal() : this.#options.unready())
  }

  #serve(call: GatewayCall, site: Site, response: ServerResponse): void {
    this.calls.add(call)
    new Serving(call, site, response, this.#parts).start()
  }

  #over(call: GatewayCall): void {
    this.calls.delete(call)
    if (this.calls.size === 0) this.#onIdle?.()
  }

  #stray(request: IncomingMessage, response: ServerResponse, error: GatewayError, dialect: Dialect = plain): void {
    const id = randomUUID()
    this.#options.onStray(id, error, request)
    refuse(request, response, error, dialect, id, this.#fieldsOf(id))
  }

  #strayOn(socket: Duplex, error: GatewayError, request: IncomingMessage | undefined): void {
    const id = randomUUID()
    if (refuseSocket(socket, error, id, this.#fieldsOf(id))) this.#options.onStray(id, error, request)
  }

  #fieldsOf(id: string): string[] {
    return everyHead(id, this.#options.context.sandbox)
  }

  #idleWithin(ms: number): Promise<void> {
    if (this.calls.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** Slow senders: headers within 20 s, a whole request within 300 s, else they would hold their sockets for ever. */
const nodeOptions: NodeOptions = {
  maxHeaderSize: 16 * 1024,
  requireHostHeader: false, // the front check does
  headersTimeout: 20_000,
  requestTimeout: 300_000,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 65_000,
  noDelay: true,
  // Clients offer other protocols (h2c) beside plain requests; only who asks for a WebSocket wants nothing else.
  shouldUpgradeCallback: request => /^websocket$/i.test(request.headers.upgrade ?? ""),
}

/** For the answers of calls that were stopped. */
const lastAnswersMs = 2_000

/** What comes behind the last request of a connection is read, and forgotten. */
const isLate = (request: IncomingMessage, response: ServerResponse): boolean => {
  const late = comesTooLate(request, response)
  if (late) request.resume()
  return late
}

/** The same, told by the parser where the client itself called that request the last. Its answer goes out, whole. */
const isBehindLast = ({ code }: NodeJS.ErrnoException): boolean => code === "HPE_CLOSED_CONNECTION"

const isFree = (request: IncomingMessage, socket: Duplex): boolean => {
  socket.on("error", () => {}) // node hands over a bare socket; a reset must not end the process
  return !answersFirst(request, socket)
}

const responseOn = (socket: Duplex, request: IncomingMessage): ServerResponse => {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket as Socket)
  response.once("finish", () => endSocket(socket))
  return response
}

const pathOf = ({ url = "/" }: IncomingMessage): string => {
  const mark = url.indexOf("?")
  return mark === -1 ? url : url.slice(0, mark)
}

const notFound = (): GatewayError => new GatewayError("not_found", "Not found")

const unknownExpectation = (): GatewayError =>
  new GatewayError("expectation_failed", "Only Expect: 100-continue is understood.")

const drainRefusal = (): GatewayError =>
  new GatewayError("draining", "The gateway is shutting down. Try again.", { headers: { "retry-after": "1" } })

const notAllowed = (allow: readonly string[]): GatewayError =>
  new GatewayError("method_not_allowed", "Method not allowed", { headers: { allow: allow.join(", ") } })

const parserErrors: Readonly<Record<string, GatewayError>> = {
  HPE_HEADER_OVERFLOW: new GatewayError("fields_too_large", "The header fields are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: new GatewayError("request_timeout", "The request did not arrive in time."),
}

const parserError = ({ code = "" }: NodeJS.ErrnoException): GatewayError =>
  parserErrors[code] ?? new GatewayError("invalid_request", "The request is not valid HTTP.")

const noUpgrade = (request: IncomingMessage, site: Site): GatewayError => {
  const found = site.match("GET", pathOf(request))
  return found === undefined
    ? notFound()
    : new GatewayError("upgrade_required", "This path takes plain HTTP requests only.")
}
