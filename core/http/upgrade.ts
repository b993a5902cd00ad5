/** Joins a client's WebSocket with a vendor's. The owner of http-proxy-3, which carries the frames untouched. */

import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { createProxyServer } from "http-proxy-3"
import type { GatewayError } from "../errors.ts"
import { clientLeft } from "./client.ts"
import { endSocket } from "./refuse.ts"
import { UpstreamError } from "./upstream.ts"

export interface TunnelOptions {
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** What the client sent behind its request. */
  readonly head: Buffer
  /** Scheme, host, port and path prefix of the vendor. */
  readonly origin: string
  /** Below the origin, query included. */
  readonly path: string
  /** Name, value, name, value ...: all that the vendor sees beside the handshake. */
  readonly fields: readonly string[]
  /** The vendor's fields that the client may see beside the handshake. */
  readonly toClient: (fields: IncomingHttpHeaders) => readonly string[]
  readonly connectMs: number
  /** Ends the handshake, or what came of it, for the error that is its reason. */
  readonly stop: AbortSignal
}

export interface OpenTunnel {
  readonly state: "open"
  /** Resolves when the client's side is over. */
  readonly closed: Promise<void>
  /** Called each time that bytes of either side pass. */
  onData(passed: () => void): void
  /** Ends both sides at once. */
  close(): void
}

/** What became of the handshake. */
export type Opened =
  | OpenTunnel
  /** The vendor answered with plain HTTP. */
  | { readonly state: "refused"; readonly status: number }

const handshake = [
  "upgrade",
  "connection",
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-protocol",
  "sec-websocket-extensions",
]
const handshakeAnswer = [
  "upgrade",
  "connection",
  "sec-websocket-accept",
  "sec-websocket-protocol",
  "sec-websocket-extensions",
]

/**
 * @throws UpstreamError when the vendor cannot be reached, or breaks off before the handshake is over; GatewayError
 *   `client_left` (499) when the client does, and the reason of a stop
 */
export const openTunnel = (options: TunnelOptions): Promise<Opened> => new Tunnel(options).opened

/** From the handshake to the end of both sides: whichever ends first takes the other with it. */
class Tunnel {
  readonly #options: TunnelOptions
  readonly #side: ClientSocket
  readonly #opened = Promise.withResolvers<Opened>()
  /** The handshake's request, then its socket. */
  #vendor: ClientRequest | Duplex | undefined

  get opened(): Promise<Opened> {
    return this.#opened.promise
  }

  constructor(options: TunnelOptions) {
    const { socket, stop } = options
    this.#options = options
    this.#side = new ClientSocket(socket)
    // A half of a WebSocket is none: a client that closes its sending side has left.
    for (const event of ["end", "error", "close"]) socket.once(event, () => this.#over(clientLeft()))
    stop.addEventListener("abort", () => this.#over(stop.reason))
    if (socket.readableEnded)
      this.#over(clientLeft()) // while the guards were asked
    else this.#begin()
  }

  #begin(): void {
    const { request, head } = this.#options
    const proxy = createProxyServer({})
    proxy.once("proxyReqWs", (outgoing: ClientRequest) => this.#shakeHands(outgoing))
    proxy.once("open", (vendor: Duplex) => this.#open(vendor))
    const failed = (cause: unknown): void => this.#opened.reject(unreachable(cause))
    proxy.on("error", failed)
    proxy.ws(requestFor(this.#options), this.#side.face, head, targetOf(this.#options), failed)
    request.socket.setTimeout(0)
  }

  #shakeHands(outgoing: ClientRequest): void {
    this.#vendor = outgoing
    const timer = setTimeout(() => outgoing.destroy(new Error("no handshake in time")), this.#options.connectMs)
    outgoing.once("close", () => clearTimeout(timer))
    // Before the library's own listeners: they would hand on the vendor's fields, and its refusal, as they are.
    outgoing.prependListener("upgrade", (answer: IncomingMessage) => {
      clearTimeout(timer)
      this.#side.phase = "open"
      answer.headers = answerFields(answer.headers, this.#options)
    })
    outgoing.prependListener("response", (answer: IncomingMessage) => {
      this.#side.phase = "refused"
      this.#opened.resolve({ state: "refused", status: answer.statusCode ?? 502 })
      outgoing.destroy() // nobody reads its body, which may have no end
    })
  }

  #open(vendor: Duplex): void {
    const { socket } = this.#options
    this.#vendor = vendor
    const closed = new Promise<void>(done => socket.once("close", () => done()))
    vendor.on("error", () => this.#close())
    socket.once("finish", () => endSocket(socket)) // the vendor ended, and all that it said is handed over
    this.#opened.resolve({
      state: "open",
      closed,
      onData: passed => {
        for (const side of [vendor, socket]) side.on("data", passed)
      },
      close: () => this.#close(),
    })
  }

  /** The client left, or the call was stopped. What a refusal still says to the client it says by itself. */
  #over(error: GatewayError): void {
    const { phase } = this.#side
    if (phase === "refused") return
    this.#opened.reject(error)
    if (phase === "open" || error.code === "client_left") this.#close()
    else this.#vendor?.destroy()
  }

  #close(): void {
    this.#vendor?.destroy()
    this.#options.socket.destroy()
  }
}

const unreachable = (cause: unknown): UpstreamError =>
  new UpstreamError("upstream_unreachable", "The model's vendor could not be reached.", { received: false, cause })

/**
 * The client's socket as the library sees it: while the handshake is not over the library must neither end it nor write
 * the vendor's refusal to it, because the client is to get an error answer of ours.
 */
class ClientSocket {
  phase: "handshake" | "open" | "refused" = "handshake"
  readonly face: Socket

  constructor(socket: Duplex) {
    this.face = new Proxy(socket as Socket, {
      get: (target, name) => {
        if (name === "destroyed" && this.phase === "refused") return true
        if (name === "destroySoon" && this.phase !== "open") return () => {}
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === "function" ? value.bind(target) : value
      },
    })
  }
}

/** The request as the vendor may see it: the handshake and what the allow-list let through. */
const requestFor = ({ request, path, fields }: TunnelOptions): IncomingMessage => {
  const headers: Record<string, string | string[] | undefined> = {}
  for (const name of handshake) if (request.headers[name] !== undefined) headers[name] = request.headers[name]
  for (let i = 0; i < fields.length; i += 2) headers[fields[i] as string] = fields[i + 1]
  return Object.create(request, { headers: { value: headers }, url: { value: path } }) as IncomingMessage
}

const targetOf = ({ origin }: TunnelOptions) => ({ target: new URL(origin), changeOrigin: true, secure: true })

const answerFields = (headers: IncomingHttpHeaders, { toClient }: TunnelOptions): IncomingHttpHeaders => {
  const kept: Record<string, string | string[] | undefined> = {}
  for (const name of handshakeAnswer) if (headers[name] !== undefined) kept[name] = headers[name]
  const own = toClient(headers)
  for (let i = 0; i < own.length; i += 2) kept[own[i] as string] = own[i + 1] as string
  return kept
}
