/**
 * One attempt at one vendor, from the request to the last byte. Until something went out to the client a fault is a
 * result, and the exchange decides what to try next; after it, the attempt ends the call and bills it once.
 */

import type { Adapter, Api, Fault, Framing } from "../adapter.ts"
import { type GatewayError, isGatewayError } from "../errors.ts"
import type { Secret, Target, Vendor } from "../offer.ts"
import type { Attempt, Clock, Draft, Outcome } from "../plugin.ts"
import type { UpstreamEnd } from "./billing.ts"
import type { Billed, GatewayCall } from "./call.ts"
import { type Decoding, decoding } from "./decoding.ts"
import type { Drains } from "./drains.ts"
import type { FieldFilter } from "./fields.ts"
import { Meter } from "./meter.ts"
import { makeOutcome } from "./outcome.ts"
import { StreamAnswer } from "./stream-answer.ts"
import { type Fields, type UpstreamCall, UpstreamError, type UpstreamHandler, type Wheel } from "./upstream.ts"
import { WholeAnswer } from "./whole-answer.ts"

/** An error answer above this is cut: nobody reads so much of an error. */
const errorBytesMax = 1024 * 1024
/** A coded answer may grow to this when it is decoded. */
const decodedBytesMax = 64 * 1024 * 1024

/** What a failed attempt leaves: an error of ours, or the vendor's own answer, to be passed on by a relay. */
export interface Failure {
  readonly attempt: Attempt
  readonly error?: GatewayError
  readonly fault?: Fault
  readonly raw?: { readonly status: number; readonly fields: Fields; readonly body: Buffer }
}

export type Result = { readonly outcome: Outcome } | { readonly failure: Failure }

export interface AttemptParts {
  readonly call: GatewayCall
  readonly draft: Draft
  readonly target: Target
  readonly vendor: Vendor
  readonly secret: Secret
  readonly adapter: Adapter
  readonly api: Api
  readonly filter: FieldFilter
  /** The attempts before this one. */
  readonly before: readonly Attempt[]
  readonly drains: Drains
  readonly clock: Clock
  readonly wheel: Wheel
  /** The dialect's bytes that end a failed event stream, and its error body. */
  readonly streamError: (error: GatewayError) => string
  readonly errorBody: (error: GatewayError) => string
  readonly onFirstToken: (seconds: number) => void
  readonly onOverflow: () => void
  readonly onSurprise: (kind: string) => void
}

/** How an answer reaches the client. */
export interface Answer {
  /** The head is out: there is no other attempt. */
  readonly sent: boolean
  data(chunk: Buffer): void
  /** The vendor's last byte came. `body` is the whole decoded answer. */
  end(body: Buffer): Promise<void>
  /** The vendor died after the head was sent: tells the client as the format allows. */
  cut(error: GatewayError): Promise<void>
}

export class AttemptRun implements UpstreamHandler {
  readonly parts: AttemptParts
  readonly result: Promise<Result>
  upstream: UpstreamCall | undefined
  status = 0
  fields: Fields = {}
  meter: Meter
  detached = false
  /** The client gets the vendor's coding as it is. */
  keepsCoding = false
  readonly #sentAt = performance.now()
  #resolve!: (result: Result) => void
  #answer: Answer | undefined
  #decoding: Decoding | undefined
  #error: Buffer[] | undefined
  #errorBytes = 0
  #firstByteMs: number | undefined
  #waited = false
  #seen: Promise<void> | undefined
  #drained = 0
  #endDrain: (() => void) | undefined
  #over = false

  constructor(parts: AttemptParts) {
    this.parts = parts
    this.meter = this.#makeMeter(undefined)
    this.result = new Promise(resolve => {
      this.#resolve = resolve
    })
  }

  start(upstream: UpstreamCall): void {
    this.upstream = upstream
    const { call } = this.parts
    call.onStop = error => void this.broken(error, "cancelled")
    call.client.onGone(() => this.#clientLeft())
  }

  // ---- what the vendor sends ----

  head(status: number, fields: Fields): void {
    this.status = status
    this.fields = fields
    this.#firstByteMs = performance.now() - this.#sentAt
    if (this.parts.call.watchers.length > 0) this.#tellWatchers()
    const failed = status < 200 || status > 299
    this.#prepareDecoding(failed)
    if (failed) this.#error = []
    else this.#choose()
  }

  data(chunk: Buffer): void {
    if (this.#over) return
    if (this.detached) this.#drain(chunk.length)
    if (this.#decoding === undefined) return this.#clear(chunk, true)
    if (this.keepsCoding && !this.detached) this.#answer?.data(chunk)
    this.#decoding.write(chunk)
  }

  end(): void {
    if (this.#decoding === undefined) void this.#ended()
    else this.#decoding.end(() => void this.#ended())
  }

  fail(error: UpstreamError): void {
    void this.broken(error)
  }

  /** Decoded bytes: to the meter, and to the client unless it gets the vendor's coding. */
  #clear(chunk: Buffer, forClient: boolean): void {
    if (this.#over) return
    if (this.#error !== undefined) {
      this.#errorBytes += chunk.length
      if (this.#errorBytes <= errorBytesMax) this.#error.push(chunk)
      return
    }
    try {
      this.meter.push(chunk)
      if (forClient && !this.detached) this.#answer?.data(chunk)
    } catch (cause) {
      void this.broken(unreadable(cause))
    }
  }

  async #ended(): Promise<void> {
    if (this.#over) return
    if (this.#error !== undefined) return this.#vendorError(Buffer.concat(this.#error))
    try {
      const body = this.meter.end()
      if (this.detached) return this.finish(await this.bill("delivered"), "abandoned")
      await this.#answer?.end(body)
    } catch (cause) {
      await this.broken(unreadable(cause))
    }
  }

  #choose(): void {
    const framing = framingOf(this.fields, this.parts.draft)
    if (framing === undefined) {
      this.#answer = new WholeAnswer(this)
      return
    }
    const answer = new StreamAnswer(this)
    this.#answer = answer
    this.meter = this.#makeMeter(framing, answer)
  }

  #makeMeter(framing: Framing | undefined, answer?: StreamAnswer): Meter {
    const { api, call, onOverflow } = this.parts
    return new Meter({
      api,
      framing,
      watchers: call.watchers,
      onOverflow,
      ...(answer === undefined ? {} : { onEvent: event => answer.event(event) }),
    })
  }

  #prepareDecoding(failed: boolean): void {
    const coding = this.fields["content-encoding"]
    if (coding === undefined || coding === "identity") return
    const { call, draft, onSurprise } = this.parts
    this.keepsCoding =
      !failed && draft.verb === "relay" && String(call.headers["accept-encoding"] ?? "").includes(String(coding))
    const spoilt = (): void => {
      onSurprise("bad_encoding")
      if (!this.keepsCoding) void this.broken(unreadable(new Error(`content-encoding ${coding}`)))
    }
    this.#decoding = decoding(String(coding), chunk => this.#clear(chunk, !this.keepsCoding), spoilt, decodedBytesMax)
  }

  #vendorError(body: Buffer): void {
    const { adapter } = this.parts
    const fault = adapter.fault(this.status, body, singleFields(this.fields))
    this.failed({ fault, raw: { status: this.status, fields: this.fields, body } })
  }

  #tellWatchers(): void {
    const fields = singleFields(this.fields)
    for (const watcher of this.parts.call.watchers) watcher.head?.(this.status, fields)
  }

  // ---- the client leaves ----

  #clientLeft(): void {
    if (this.#over || this.detached) return
    const { vendor, drains, call } = this.parts
    this.detached = true
    call.leave()
    const late = (): void => void this.#cancel()
    this.#endDrain = vendor.onClientAbort === "drain" ? drains.begin(this.meter.framing !== undefined, late) : undefined
    if (this.#endDrain === undefined) return void this.#cancel()
    this.upstream?.resume()
    this.#resolve({ outcome: this.#outcome({ source: "none" }, "abandoned") })
  }

  #drain(bytes: number): void {
    this.#drained += bytes
    if (this.#drained > this.parts.drains.bytesMax) void this.#cancel()
  }

  /** Reading on would cost more than it tells: what was seen is billed. */
  async #cancel(): Promise<void> {
    if (!this.#close()) return
    this.upstream?.abort()
    this.finish(await this.bill("cancelled"), "abandoned")
  }

  // ---- ends ----

  /** The vendor died, or its answer cannot be translated, or the call was stopped. */
  async broken(error: GatewayError, end: UpstreamEnd = "broken"): Promise<void> {
    if (this.#over) return
    if (!this.detached && this.#answer?.sent !== true) {
      this.upstream?.abort()
      return this.failed({ error })
    }
    this.#close()
    this.upstream?.abort()
    const billed = await this.bill(end)
    if (!this.detached) await this.#answer?.cut(error)
    this.finish(billed, this.detached ? "abandoned" : "broken")
  }

  /** Nothing went out: the exchange may try again. */
  failed(failure: Omit<Failure, "attempt">): void {
    if (!this.#close()) return
    this.waited()
    this.#endDrain?.()
    if (this.detached) void this.parts.call.release()
    this.#resolve({ failure: { ...failure, attempt: this.attempt(failure.error) } })
  }

  finish(billed: Billed, end: Outcome["end"]): void {
    this.#close()
    this.#endDrain?.()
    this.#resolve({ outcome: this.#outcome(billed, end) })
  }

  /** Settles or releases by what the meter read. */
  async bill(end: UpstreamEnd): Promise<Billed> {
    this.#over = true
    const { api, call, target, onSurprise } = this.parts
    for (const kind of this.meter.reader.surprises ?? []) onSurprise(kind)
    if (api.metered === false) return { source: "none" }
    return call.bill(this.meter.report(), end, target)
  }

  /** Tells the draft the vendor's id of what it stored, once it is known; the client may use it from then on. */
  saw(): Promise<void> | undefined {
    const { seen } = this.parts.draft
    const id = seen === undefined ? undefined : this.meter.report().id
    if (seen !== undefined && id !== undefined) this.#seen ??= seen(id, this.attempt())
    return this.#seen
  }

  /** The vendor's part of the waiting ends here: at the head of a stream, at the end of a whole answer. */
  waited(): void {
    if (this.#waited) return
    this.#waited = true
    this.parts.call.upstreamMs += performance.now() - this.#sentAt
  }

  firstToken(): void {
    this.parts.onFirstToken((performance.now() - this.#sentAt) / 1000)
  }

  /** The vendor's fields that the client may see; `content-type` only where its bytes pass. */
  vendorFields(fields: string[], relayed: boolean): void {
    const { filter, secret } = this.parts
    filter.toClient(relayed ? this.fields : { ...this.fields, "content-type": undefined }, secret.reveal(), fields)
    if (this.keepsCoding) fields.push("content-encoding", String(this.fields["content-encoding"]))
  }

  /** False when the attempt is over already. */
  #close(): boolean {
    this.parts.call.onStop = undefined
    if (this.#over) return false
    this.#over = true
    return true
  }

  attempt(error?: GatewayError): Attempt {
    const { vendor, secret } = this.parts
    const ms = performance.now() - this.#sentAt
    return {
      vendor: vendor.name,
      secret: secret.name,
      status: this.status,
      ms,
      ...(error === undefined ? {} : { error: error.code }),
    }
  }

  #outcome(billed: Billed, end: Outcome["end"]): Outcome {
    const { call, target, before } = this.parts
    return makeOutcome({
      end,
      status: this.status,
      target,
      attempts: [...before, this.attempt()],
      source: billed.source,
      bytesOut: call.client.bytesOut,
      upstreamMs: call.upstreamMs,
      streamed: this.meter.framing !== undefined,
      ...(billed.usage === undefined ? {} : { usage: billed.usage }),
      ...(billed.micros === undefined ? {} : { billedMicros: billed.micros }),
      ...(this.#firstByteMs === undefined ? {} : { firstByteMs: this.#firstByteMs }),
    })
  }
}

const framingOf = (fields: Fields, draft: Draft): Framing | undefined => {
  const type = String(fields["content-type"] ?? "")
  if (type.includes("text/event-stream")) return "sse"
  return draft.streamed && draft.verb === "relay" && type.includes("json") ? "json-array" : undefined
}

/** Repeated fields joined, as RFC 9110 section 5.3 allows. */
export const singleFields = (fields: Fields): Record<string, string | undefined> => {
  const out: Record<string, string | undefined> = {}
  for (const name in fields) {
    const value = fields[name]
    out[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return out
}

/** A translation may throw the error that the client should see; anything else is the vendor's nonsense. */
const unreadable = (cause: unknown): GatewayError =>
  isGatewayError(cause)
    ? cause
    : new UpstreamError("upstream_unavailable", "The model's vendor gave an answer that cannot be read.", true, cause)
