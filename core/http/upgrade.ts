/** Joins a client's WebSocket with a vendor's. The owner of http-proxy-3, which carries the frames untouched. */

import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { createProxyServer } from "http-proxy-3"
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
}

/** What became of the handshake. */
export type Opened =
  /** `closed` resolves when the client's side is over. */
  | { readonly state: "open"; readonly closed: Promise<void>; close(): void }
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

/** @throws UpstreamError when the vendor cannot be reached, or breaks off before the handshake is over */
export const openTunnel = (options: TunnelOptions): Promise<Opened> =>
  new Promise((resolve, reject) => {
    const { socket, request, head } = options
    const proxy = createProxyServer({})
    const side = new ClientSocket(socket)
    const closed = new Promise<void>(done => socket.once("close", () => done()))
    proxy.once("proxyReqWs", (outgoing: ClientRequest) => {
      const timer = setTimeout(() => outgoing.destroy(new Error("no handshake in time")), options.connectMs)
      outgoing.once("close", () => clearTimeout(timer))
      // Before the library's own listeners: they would hand on the vendor's fields, and its refusal, as they are.
      outgoing.prependListener("upgrade", (answer: IncomingMessage) => {
        clearTimeout(timer)
        side.phase = "open"
        answer.headers = answerFields(answer.headers, options)
      })
      outgoing.prependListener("response", (answer: IncomingMessage) => {
        side.phase = "refused"
        resolve({ state: "refused", status: answer.statusCode ?? 502 })
      })
    })
    proxy.once("open", (upstream: Duplex) => {
      const close = (): void => {
        upstream.destroy()
        socket.destroy()
      }
      upstream.on("error", close)
      // Either side of a WebSocket ends both: one that keeps its half open would keep the socket.
      for (const event of ["end", "close"]) socket.once(event, close)
      resolve({ state: "open", closed, close })
    })
    const failed = (cause: unknown): void =>
      reject(
        new UpstreamError("upstream_unreachable", "The model's vendor could not be reached.", {
          received: false,
          cause,
        }),
      )
    proxy.on("error", failed)
    proxy.ws(requestFor(options), side.face, head, targetOf(options), failed)
    request.socket.setTimeout(0)
  })

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
