/** The vendor's side of a call: one pool per origin and credential, absolute deadlines, no redirect, nothing reused after a fault. */

import type { Readable } from "node:stream"
import type { Dispatcher } from "undici"
// Not the index: it also loads fetch, WebSockets and test doubles, 13 MB and 40 ms that nothing here uses.
import Pool from "undici/lib/dispatcher/pool.js"
import { type ErrorCode, GatewayError } from "../errors.ts"
import type { Secret, Vendor } from "../offer.ts"
import type { Clock, Method } from "../plugin.ts"
import type { Deadlines, Watched } from "./deadlines.ts"
import { digestOf } from "./secret-digest.ts"

export type Fields = Readonly<Record<string, string | string[] | undefined>>

export interface UpstreamRequest {
  readonly vendor: Vendor
  readonly secret: Secret
  readonly method: Method
  /** Below the vendor's origin, query included. */
  readonly path: string
  /** Name, value, name, value ... */
  readonly fields: readonly string[]
  readonly body: readonly Buffer[]
  /** Streams live as long as `totalStreamMs`, whole answers `totalMs`. */
  readonly streamed: boolean
}

/** Told in this order: head, data*, then end or fail, once. Nothing is told after `abort`. */
export interface UpstreamHandler {
  head(status: number, fields: Fields): void
  data(chunk: Buffer): void
  end(): void
  fail(error: UpstreamError): void
}

export interface UpstreamCall {
  pause(): void
  resume(): void
  abort(): void
}

/** A transport fault. */
export class UpstreamError extends GatewayError {
  /** The vendor may have got the request. */
  readonly received: boolean
  /** The whole time of an answer is used up: we stopped reading, the vendor did not fail. */
  readonly ours: boolean
  constructor(code: ErrorCode, message: string, about: { received: boolean; ours?: boolean; cause?: unknown }) {
    super(code, message, { cause: about.cause })
    this.received = about.received
    this.ours = about.ours ?? false
  }
}

export interface Upstream {
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall
  /** Sockets of vendors and credentials that left the configuration are closed once idle. */
  keep(vendors: Iterable<Vendor>): void
  close(): Promise<void>
}

/** Header blocks of vendors above this are a fault (undici's own limit). */
const headBytesMax = 64 * 1024

export const createUpstream = (options: {
  connections: () => number
  clock: Clock
  deadlines: Deadlines
}): Upstream => {
  const pools = new Map<string, Pool>()

  const poolKey = (vendor: Vendor, secret: Secret): string =>
    `${vendor.origin} ${vendor.timeouts.connectMs} ${options.connections()} ${digestOf(secret)}`

  const poolOf = (vendor: Vendor, secret: Secret): Pool => {
    const key = poolKey(vendor, secret)
    let pool = pools.get(key)
    if (pool === undefined) {
      pool = new Pool(new URL(vendor.origin).origin, {
        connections: options.connections(),
        pipelining: 1,
        allowH2: false,
        maxHeaderSize: headBytesMax,
        headersTimeout: 0, // our deadlines are absolute: informational answers for ever do not push them away
        bodyTimeout: 0,
        connect: { timeout: vendor.timeouts.connectMs },
      })
      pools.set(key, pool)
    }
    return pool
  }

  return {
    send: (request, handler) => new InFlight(request, handler, options).start(poolOf(request.vendor, request.secret)),
    keep: vendors => {
      const wanted = new Set<string>()
      for (const vendor of vendors) for (const secret of vendor.secrets) wanted.add(poolKey(vendor, secret))
      for (const [key, pool] of pools) {
        if (wanted.has(key)) continue
        pools.delete(key)
        void pool.close().catch(() => {})
      }
    },
    close: async () => {
      await Promise.all([...pools.values()].map(pool => pool.destroy()))
      pools.clear()
    },
  }
}

/** One request on its way: undici's handler and the deadline of its present phase. */
class InFlight implements UpstreamCall, Watched, Dispatcher.DispatchHandler {
  deadline: number
  place: number | undefined
  readonly #request: UpstreamRequest
  readonly #handler: UpstreamHandler
  readonly #clock: Clock
  readonly #totalAt: number
  readonly #deadlines: Deadlines
  #controller: Dispatcher.DispatchController | undefined
  #paused = false
  #started = false
  #over = false

  constructor(request: UpstreamRequest, handler: UpstreamHandler, options: { clock: Clock; deadlines: Deadlines }) {
    const { timeouts } = request.vendor
    const now = options.clock.steady()
    this.#request = request
    this.#handler = handler
    this.#clock = options.clock
    this.#totalAt = now + (request.streamed ? timeouts.totalStreamMs : timeouts.totalMs)
    this.deadline = Math.min(this.#totalAt, now + timeouts.firstByteMs)
    this.#deadlines = options.deadlines
    this.#deadlines.watch(this)
  }

  start(pool: Pool): UpstreamCall {
    const { method, path, vendor } = this.#request
    const prefix = pathPrefix(vendor.origin)
    pool.dispatch({ method, path: prefix + path, ...contentOf(this.#request) }, this)
    return this
  }

  pause(): void {
    this.#paused = true
    this.deadline = this.#totalAt // a slow client is not an idle vendor
    this.#controller?.pause()
  }

  resume(): void {
    this.#paused = false
    this.#alive()
    this.#controller?.resume()
  }

  abort(): void {
    if (this.#over) return
    this.#finish()
    this.#controller?.abort(new Error("aborted"))
  }

  expire(now: number): void {
    if (this.#over) return
    const about = { received: true, ours: now >= this.#totalAt }
    this.#fail(new UpstreamError("upstream_timeout", "The model's vendor did not answer in time.", about))
    this.#controller?.abort(new Error("deadline"))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#started = true
    if (this.#over) controller.abort(new Error("aborted"))
  }

  onRequestUpgrade(controller: Dispatcher.DispatchController): void {
    controller.abort(new Error("unasked upgrade"))
    this.#fail(
      new UpstreamError("upstream_unavailable", "The model's vendor gave no proper answer.", { received: true }),
    )
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, fields: Fields): void {
    if (this.#over || status < 200) return
    this.#alive()
    this.#handler.head(status, fields)
    if (this.#paused) controller.pause()
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    this.#alive()
    this.#handler.data(chunk)
  }

  onResponseEnd(): void {
    if (this.#over) return
    this.#finish()
    this.#handler.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#over) this.#fail(transportFault(error, this.#started))
  }

  #alive(): void {
    if (!this.#paused)
      this.deadline = Math.min(this.#totalAt, this.#clock.steady() + this.#request.vendor.timeouts.idleMs)
  }

  #fail(error: UpstreamError): void {
    this.#finish()
    this.#handler.fail(error)
  }

  #finish(): void {
    this.#over = true
    this.#deadlines.unwatch(this)
  }
}

/** A body up to this is one buffer: its parts one by one cost far more, and the system takes so much at once. */
const oneBufferMax = 256 * 1024

/**
 * undici takes a buffer for sent when it was handed over, and a readable when it was read, so that a vendor that answers
 * before it read all would leave a connection whose next request waits behind the rest. Of an iterable it waits until the
 * socket took all, and closes a connection whose answer came before.
 */
const contentOf = ({ fields, body }: UpstreamRequest): Pick<Dispatcher.DispatchOptions, "headers" | "body"> => {
  const bytes = body.reduce((sum, part) => sum + part.length, 0)
  if (bytes > oneBufferMax) return { headers: [...fields, "content-length", String(bytes)], body: asContent(body) }
  return { headers: fields as string[], body: body.length <= 1 ? (body[0] ?? null) : Buffer.concat(body, bytes) }
}

/** undici's pages name iterables, its types do not. */
const asContent = (parts: Iterable<Buffer>) => parts as unknown as Readable

const prefixes = new Map<string, string>()

/** The path that a vendor's origin carries, without its last slash. */
const pathPrefix = (origin: string): string => {
  let prefix = prefixes.get(origin)
  if (prefix === undefined) {
    prefix = new URL(origin).pathname.replace(/\/$/, "")
    prefixes.set(origin, prefix)
  }
  return prefix
}

/** System and undici codes of faults before a request could have been sent. */
const connectCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_HAS_EXPIRED",
  "EPROTO",
])

const transportFault = (error: Error, started: boolean): UpstreamError => {
  const code = (error as { code?: unknown }).code
  const unreachable = !started || (typeof code === "string" && (connectCodes.has(code) || code.startsWith("ERR_SSL")))
  return unreachable
    ? new UpstreamError("upstream_unreachable", "The model's vendor could not be reached.", {
        received: false,
        cause: error,
      })
    : new UpstreamError("upstream_unavailable", "The model's vendor broke off the connection.", {
        received: true,
        cause: error,
      })
}
