/** Request bodies: received within a budget of memory, read from their bytes, passed on with another model. */

import type { IncomingMessage } from "node:http"
import { GatewayError } from "../errors.ts"
import type { Body, BodyScan, Route } from "../plugin.ts"
import { clientLeft } from "./client.ts"
import { codedBody } from "./front-check.ts"
import { type ByteRange, type ScannedJson, type ScanOptions, scanJson } from "./json-scan.ts"

// ---- receiving ----

/** The memory that all bodies of the process share, in bytes. */
export interface ByteBudget {
  /** False when it does not fit: nothing was taken then. */
  take(bytes: number): boolean
  give(bytes: number): void
  readonly used: number
}

export const createByteBudget = (maxBytes: () => number): ByteBudget => {
  let used = 0
  return {
    take(bytes) {
      if (used + bytes > maxBytes()) return false
      used += bytes
      return true
    },
    give(bytes) {
      used -= bytes
    },
    get used() {
      return used
    },
  }
}

export interface ReceiveOptions {
  /** The most that may be declared or counted; this many pass. */
  readonly maxBytes: number
  readonly budget: ByteBudget
  /** Bytes of bodies in memory. */
  readonly gauge?: { add(bytes: number): void }
  /** Told that its body is wanted, when nothing that it declared speaks against it. */
  readonly sender?: { askForBody(): void }
}

export interface ReceivedBody {
  readonly bytes: Buffer
  /** Gives the bytes back to the budget; what comes after the first call does nothing. */
  done(): void
}

/**
 * The whole body in one buffer. A slow sender is the server's business: its request timeout ends the socket, and this rejects.
 *
 * @throws GatewayError what stopped it; `body_too_large` (413), `shed` (503 with `retry-after`): the budget is full; `client_left` (499),
 *   `unsupported_media_type` (415): the body is coded
 */
export const receiveBody = async (request: IncomingMessage, options: ReceiveOptions): Promise<ReceivedBody> => {
  const refusal = codedBody(request)
  if (refusal !== undefined) throw refusal
  const share = new Share(options)
  try {
    const buffer = new GrowingBuffer(declaredBytes(request), options.maxBytes, share)
    options.sender?.askForBody()
    const bytes = await collect(request, buffer)
    return { bytes, done: () => share.giveBack() }
  } catch (error) {
    share.giveBack()
    throw error
  }
}

/** What one body holds of the budget. */
class Share {
  readonly #options: ReceiveOptions
  #bytes = 0

  constructor(options: ReceiveOptions) {
    this.#options = options
  }

  take(bytes: number): void {
    if (!this.#options.budget.take(bytes)) {
      throw new GatewayError("shed", "Too many large requests at once. Try again.", { headers: { "retry-after": "1" } })
    }
    this.#bytes += bytes
    this.#options.gauge?.add(bytes)
  }

  giveBack(): void {
    if (this.#bytes === 0) return
    this.#options.budget.give(this.#bytes)
    this.#options.gauge?.add(-this.#bytes)
    this.#bytes = 0
  }
}

/** `undefined` for a chunked body, whose length nobody declared. Node took digits only. */
const declaredBytes = (request: IncomingMessage): number | undefined => {
  const declared = request.headers["content-length"]
  if (declared !== undefined) return Number(declared)
  return request.headers["transfer-encoding"] === undefined ? 0 : undefined
}

const firstBytes = 64 * 1024
/** A declared length is reached in few steps, and never more than this is allocated for each byte that came. */
const growthDeclared = 8
const growthUndeclared = 2

class GrowingBuffer {
  readonly #declared: number | undefined
  readonly #maxBytes: number
  readonly #share: Share
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  constructor(declared: number | undefined, maxBytes: number, share: Share) {
    if (declared !== undefined && declared > maxBytes) throw tooLarge(maxBytes)
    this.#declared = declared
    this.#maxBytes = maxBytes
    this.#share = share
  }

  push(chunk: Buffer): void {
    const length = this.#length + chunk.length
    if (length > this.#maxBytes) throw tooLarge(this.#maxBytes)
    if (this.#length === 0 && length === this.#declared) {
      this.#share.take(length)
      this.#buffer = chunk // the usual small body: one chunk, kept as it is
    } else {
      if (length > this.#buffer.length) this.#grow(length)
      chunk.copy(this.#buffer, this.#length)
      if (chunk.length === chunk.buffer.byteLength) free(chunk) // Node cut it for us alone
    }
    this.#length = length
  }

  bytes(): Buffer {
    return this.#length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, this.#length)
  }

  #grow(least: number): void {
    const growth = this.#declared === undefined ? growthUndeclared : growthDeclared
    const most = this.#declared ?? this.#maxBytes
    const size = Math.min(most, Math.max(firstBytes, this.#length * growth, least))
    this.#share.take(size - this.#buffer.length)
    const larger = Buffer.allocUnsafeSlow(size) // not of the shared pool, which a body would keep alive
    this.#buffer.copy(larger, 0, 0, this.#length)
    free(this.#buffer)
    this.#buffer = larger
  }
}

/** Memory that only we know of goes back at once: garbage of this size would stand beside the body until it is collected. */
const free = ({ buffer }: Buffer): void => {
  if (buffer.byteLength > 0) (buffer as ArrayBuffer).transfer(0)
}

/** Ends the wait for a body, if there is one. An event, as what else may end it: a field of the call would keep each call alive. */
export const stopReceiving = (request: IncomingMessage, error: GatewayError): void => void request.emit(stopped, error)

const stopped = "stopped"

const collect = (request: IncomingMessage, into: GrowingBuffer): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const { socket } = request
    const settle = (finish: () => void): void => {
      request.off("data", take).off("end", end).off("close", leave).off("error", leave).off(stopped, stop)
      socket.off("finish", leave)
      finish()
    }
    const take = (chunk: Buffer): void => {
      try {
        into.push(chunk)
      } catch (error) {
        settle(() => reject(error))
      }
    }
    const end = (): void => settle(() => resolve(into.bytes()))
    const leave = (): void => settle(() => reject(clientLeft()))
    if (request.destroyed) return reject(clientLeft())
    const stop = (error: GatewayError): void => settle(() => reject(error))
    request.on("data", take).on("end", end).on("close", leave).on("error", leave).on(stopped, stop)
    socket.on("finish", leave) // our side was ended (too slow a sender): a client that sends on would be waited for
  })

const megabyte = 1024 * 1024

const tooLarge = (maxBytes: number): GatewayError => {
  const size = maxBytes % megabyte === 0 ? `${maxBytes / megabyte}MB` : `${maxBytes} bytes`
  return new GatewayError("body_too_large", `Request body too large. Maximum size is ${size}.`)
}

// ---- reading ----

/**
 * Looked for in every body, whoever reads them: fields that decide the model, the price or what a vendor stores. Each may
 * stand there once, because two parsers could take different ones.
 */
export const alwaysRead: readonly string[] = [
  "model",
  "stream",
  "stream_options",
  "n",
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "service_tier",
  "background",
  "store",
  "previous_response_id",
  "conversation",
  "generationConfig",
]

/** What is looked for in a route's bodies. Make it once per route: what a scan prepares is kept by it. */
export const scanOptionsOf = (route: Pick<Route, "reads" | "finds" | "parts">): ScanOptions => ({
  reads: new Set([...alwaysRead, ...(route.reads ?? [])]),
  finds: new Set(route.finds),
  parts: route.parts,
})

export class ScannedBody implements Body {
  readonly bytes: Buffer
  readonly scan: BodyScan
  readonly #reads: ReadonlySet<string>
  readonly #fields: ReadonlyMap<string, ByteRange>
  #parsed: Map<string, unknown> | undefined
  #json: Record<string, unknown> | undefined

  constructor(bytes: Buffer, scan: ScannedJson, reads: ReadonlySet<string>) {
    this.bytes = bytes
    this.scan = scan
    this.#reads = reads
    this.#fields = scan.fields
  }

  /** Where the value of a top-level field that is read stands. */
  range(name: string): ByteRange | undefined {
    // Otherwise a field that the scan was not told of would look absent.
    if (!this.#reads.has(name)) throw new Error(`"${name}" is not among the fields that this route reads`)
    return this.#fields.get(name)
  }

  field(name: string): unknown {
    const range = this.range(name)
    if (range === undefined) return undefined
    if (this.#json !== undefined) return this.#json[name]
    this.#parsed ??= new Map()
    let value = this.#parsed.get(name)
    if (value === undefined) {
      value = JSON.parse(this.bytes.toString("utf8", range.start, range.end))
      this.#parsed.set(name, value)
    }
    return value
  }

  json(): Record<string, unknown> {
    this.#json ??= JSON.parse(this.bytes.toString()) as Record<string, unknown>
    return this.#json
  }
}

/**
 * A received body as JSON.
 * @throws GatewayError as `scanJson`, and `validation_failed` (422) when the root is not an object
 */
export const bodyOf = (bytes: Buffer, options: ScanOptions): ScannedBody => {
  const scan = scanJson(bytes, options)
  if (scan.root !== "object") throw notAnObject()
  return new ScannedBody(bytes, scan, options.reads)
}

/** A body that nobody looks into. */
export const rawBody = (bytes: Buffer): ScannedBody =>
  new ScannedBody(
    bytes,
    { root: "other", fields: new Map(), textBytes: 0, images: 0, files: 0, found: new Map(), values: 0 },
    new Set(),
  )

const notAnObject = (): GatewayError => {
  const msg = "Input should be a valid object"
  return new GatewayError("validation_failed", msg, { detail: [{ type: "object_type", loc: ["body"], msg }] })
}

const modelOnly: ScanOptions = { reads: new Set(["model"]) }

/** The body with another top-level `model`; every other byte is the client's own. Without a model it stays as it is. */
export const spliceModel = (body: Body, name: string): readonly Buffer[] => {
  const { bytes } = body
  const scanned = body instanceof ScannedBody ? body : bodyOf(bytes, modelOnly)
  const range = scanned.range("model")
  if (range === undefined) return [bytes]
  return [bytes.subarray(0, range.start), Buffer.from(JSON.stringify(name)), bytes.subarray(range.end)]
}
