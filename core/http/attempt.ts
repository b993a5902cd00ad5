/**
 * One attempt at one vendor, from the request to the last byte. Until something went out to the client a fault is a
 * result, and the exchange decides what to try next; after it, the attempt ends the call and bills it once.
 */

import type { Framing, StreamEvent, UsageReport } from "../adapter.ts"
import { asGatewayError, type GatewayError } from "../errors.ts"
import type { Attempt, Billed, Outcome } from "../plugin.ts"
import {
  type Answer,
  type AttemptParts,
  asUnreadable,
  type Failure,
  framingOf,
  type Result,
  singleFields,
} from "./answer.ts"
import type { UpstreamEnd } from "./billing.ts"
import { accepts, type Decoding, decoding, isIdentity } from "./decoding.ts"
import type { Drain } from "./drains.ts"
import { ErrorAnswer } from "./error-answer.ts"
import { errorIn, verdictOfEnd, withoutSecret } from "./failure.ts"
import { type FaultEvent, Meter } from "./meter.ts"
import { outcomeOf } from "./outcome.ts"
import { StreamAnswer } from "./stream-answer.ts"
import type { Fields, UpstreamCall, UpstreamError, UpstreamHandler } from "./upstream.ts"
import { WholeAnswer } from "./whole-answer.ts"

/** A coded answer may grow to this when it is decoded. */
const decodedBytesMax = 64 * 1024 * 1024

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
  readonly #stop = (error: GatewayError): void => void this.broken(error, "cancelled")
  #resolve!: (result: Result) => void
  #bringLater: ((billed: Billed) => void) | undefined
  #answer: Answer | undefined
  #error: ErrorAnswer | undefined
  #decoding: Decoding | undefined
  #drain: Drain | undefined
  #firstByteMs: number | undefined
  /** Until when the vendor was waited for; after its last byte nothing is. */
  #waitedTo = this.#sentAt
  #seen: Promise<void> | undefined
  #billed: Billed = { source: "none" }
  /** What broke an answer that was under way. */
  #cause: GatewayError | undefined
  #over = false

  constructor(parts: AttemptParts) {
    this.parts = parts
    this.meter = this.#makeMeter()
    this.result = new Promise(resolve => {
      this.#resolve = resolve
    })
  }

  start(upstream: UpstreamCall): void {
    this.upstream = upstream
    const { call } = this.parts
    call.onStop = this.#stop
    call.client.onGone(() => this.#clientLeft())
  }

  // ---- what the vendor sends ----

  head(status: number, fields: Fields): void {
    this.status = status
    this.fields = fields
    this.#firstByteMs = performance.now() - this.#sentAt
    const failed = status < 200 || status > 299
    this.#prepareDecoding(failed)
    if (failed) this.#error = new ErrorAnswer()
    else this.#choose()
    if (this.parts.call.watchers.length > 0) this.#tellHead()
  }

  data(chunk: Buffer): void {
    this.#drain?.read(chunk.length)
    if (this.#over) return
    if (this.#decoding === undefined) return this.#clear(chunk, true)
    if (this.keepsCoding && !this.detached) this.#answer?.data(chunk)
    this.#decoding.write(chunk)
  }

  end(): void {
    this.waited(true)
    if (this.#decoding === undefined) void this.#ended()
    else this.#decoding.end(() => void this.#ended())
  }

  fail(error: UpstreamError): void {
    void this.broken(error, error.ours ? "cancelled" : "broken")
  }

  /** Decoded bytes: to the meter, and to the client unless it gets the vendor's coding. */
  #clear(chunk: Buffer, forClient: boolean): void {
    if (this.#over) return
    if (this.#error !== undefined) {
      if (!this.#error.push(chunk)) this.#vendorError(this.#error)
    } else if (this.#metered(chunk) && !this.detached) {
      if (forClient) this.#answer?.data(chunk)
      else this.#answer?.read?.()
    }
  }

  #metered(chunk: Buffer): boolean {
    try {
      this.meter.push(chunk)
      return true
    } catch (cause) {
      this.#spoilt(cause)
      return false
    }
  }

  #tellHead(): void {
    try {
      this.meter.head(this.status, singleFields(this.fields))
    } catch (cause) {
      this.#spoilt(cause)
    }
  }

  /** A translation or a watcher threw: what came before it still reaches the client. */
  #spoilt(cause: unknown): void {
    if (!this.detached && !this.#over) this.#answer?.begin?.()
    void this.broken(asUnreadable(cause))
  }

  async #ended(): Promise<void> {
    if (this.#over) return
    if (this.#error !== undefined) return this.#vendorError(this.#error)
    try {
      const body = this.meter.end()
      if (this.detached) this.finish(await this.bill(this.upstreamEnd), "abandoned")
      else await this.#answer?.end(body)
    } catch (cause) {
      if (!this.#over) return this.broken(asUnreadable(cause))
      this.#cause = asGatewayError(cause)
      this.parts.call.client.cut() // billed, but the answer could not be written
      this.finish(this.#billed, "broken")
    }
  }

  /** An error event after content breaks an answer off, whoever sent its bytes. */
  get upstreamEnd(): "delivered" | "broken" {
    return this.meter.fault === undefined ? "delivered" : "broken"
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

  #makeMeter(framing?: Framing, answer?: StreamAnswer): Meter {
    const { api, call, draft, metrics } = this.parts
    const onOverflow = (): void => {
      metrics.overflow()
      if (draft.verb === "stream") throw asUnreadable(new Error("an event is too large to be translated"))
    }
    const onEvent = (event: StreamEvent): void => answer?.event(event)
    const onFault = (told: FaultEvent): void => answer?.fault(told)
    return new Meter({ api, watchers: call.watchers, framing, onOverflow, onEvent, onFault })
  }

  #prepareDecoding(failed: boolean): void {
    const coding = String(this.fields["content-encoding"] ?? "")
    if (isIdentity(coding)) return
    const { call, draft, metrics } = this.parts
    this.keepsCoding = !failed && draft.verb === "relay" && accepts(call.headers["accept-encoding"], coding)
    const spoilt = (): void => {
      metrics.surprise("bad_encoding")
      this.meter.lost()
      if (!this.keepsCoding) void this.broken(asUnreadable(new Error("the content coding is broken")))
    }
    this.#decoding = decoding(coding, chunk => this.#clear(chunk, !this.keepsCoding), spoilt, decodedBytesMax)
  }

  #vendorError(answer: ErrorAnswer): void {
    const { adapter } = this.parts
    const body = answer.body()
    const fault = adapter.fault(this.status, body, singleFields(this.fields))
    this.upstream?.abort() // an error without end is no more than its beginning
    this.failed({ fault, raw: { status: this.status, fields: this.fields, body } })
  }

  // ---- the client leaves ----

  #clientLeft(): void {
    if (this.#over || this.detached) return
    const { vendor, drains, call, draft } = this.parts
    this.waited(true)
    this.detached = true
    call.leave()
    const isStream = draft.streamed || this.meter.framing !== undefined
    const late = (): void => void this.#cancel()
    this.#drain = vendor.onClientAbort === "drain" ? drains.begin(isStream, late) : undefined
    if (this.#drain === undefined) return void this.#cancel()
    this.upstream?.resume()
    const later = new Promise<Billed>(resolve => {
      this.#bringLater = resolve
    })
    call.later = later
    this.#resolve({ outcome: this.#outcome({ source: "none" }, "abandoned", later), verdict: "unknown" })
  }

  /** Nothing more is read: what was seen is billed. */
  async #cancel(): Promise<void> {
    if (!this.#close()) return
    this.upstream?.abort()
    this.finish(await this.bill("cancelled"), "abandoned")
  }

  // ---- ends ----

  /** The vendor died, or its answer cannot be translated, or the call was stopped. */
  async broken(error: GatewayError, end: UpstreamEnd = "broken"): Promise<void> {
    if (this.#over) return
    this.upstream?.abort()
    if (!this.detached && this.#answer?.sent !== true) return this.failed({ error })
    this.#cause = error
    this.#close()
    if (error.code === "plugin_failed") this.parts.metrics.pluginFailed(error.cause, error.plugin)
    const billed = await this.bill(end)
    if (!this.detached) await this.#answer?.cut(withoutSecret(error, this.parts.secret))
    this.finish(billed, this.detached ? "abandoned" : "broken")
  }

  /** Nothing went out: the exchange may try again. */
  failed(failure: Omit<Failure, "attempt">): void {
    if (!this.#close()) return
    this.#bringLater?.({ source: "none" })
    if (this.detached) void this.#giveUp()
    this.#resolve({ failure: { ...failure, attempt: this.attempt(errorIn(failure)) } })
  }

  /** Nobody waits for this answer any more, and there is nothing to bill. */
  async #giveUp(): Promise<void> {
    const { call, metrics } = this.parts
    await call.release().catch(cause => metrics.pluginFailed(cause, call.biller))
    this.#drain?.end()
  }

  finish(billed: Billed, end: Outcome["end"]): void {
    this.#close()
    this.#drain?.end()
    this.#bringLater?.(billed)
    this.#resolve({ outcome: this.#outcome(billed, end), verdict: verdictOfEnd(end, this.#cause, this.meter.fault) })
  }

  /** Settles or releases by what the meter read. Never rejects: a settle that fails takes no answer away. */
  async bill(end: UpstreamEnd): Promise<Billed> {
    this.#over = true
    const { api, call, metrics } = this.parts
    try {
      const report = this.meter.report()
      for (const kind of this.meter.surprises) metrics.surprise(kind)
      if (api.metered !== false) this.#billed = await this.#bill(report, end)
    } catch (cause) {
      metrics.pluginFailed(cause, call.biller)
    }
    return this.#billed
  }

  /** What nobody answered, and what ended in an error before any content, costs nothing. */
  #bill(report: UsageReport, end: UpstreamEnd): Promise<Billed> {
    const { call, target } = this.parts
    if (this.status === 0 || typeof this.meter.sign === "object") return call.unbilled()
    return call.bill(report, this.detached && end === "broken" ? "cancelled" : end, target, this.meter.seen)
  }

  /** Tells the draft the vendor's id of what it stored, once it is known; the client may use it from then on. */
  saw(): Promise<void> | undefined {
    const { seen } = this.parts.draft
    const id = seen === undefined ? undefined : this.meter.report().id
    if (seen !== undefined && id !== undefined) this.#seen ??= seen(id, this.attempt())
    return this.#seen
  }

  /** The time up to now was the vendor's, also that between the pieces of its answer. `over`: all after it is ours. */
  waited(over = false): void {
    const now = performance.now()
    this.parts.call.upstreamMs += Math.max(0, now - this.#waitedTo)
    this.#waitedTo = over ? Number.POSITIVE_INFINITY : now
  }

  firstToken(): void {
    this.parts.metrics.firstToken((performance.now() - this.#sentAt) / 1000)
  }

  /** The vendor's fields that the client may see; `content-type` only where its bytes pass. */
  vendorFields(fields: string[], relayed: boolean): void {
    const { filter, secret } = this.parts
    filter.toClient(relayed ? this.fields : { ...this.fields, "content-type": undefined }, secret.reveal(), fields)
    if (this.keepsCoding) fields.push("content-encoding", String(this.fields["content-encoding"]))
  }

  /** False when the attempt is over already. */
  #close(): boolean {
    const { call } = this.parts
    if (call.onStop === this.#stop) call.onStop = undefined
    this.#answer?.close?.()
    this.#decoding?.close()
    if (this.#over) return false
    this.#over = true
    this.waited(true)
    return true
  }

  attempt(error?: GatewayError): Attempt {
    const { vendor, secret } = this.parts
    const ms = performance.now() - this.#sentAt
    const { status } = this
    return error === undefined
      ? { vendor: vendor.name, secret: secret.name, status, ms }
      : { vendor: vendor.name, secret: secret.name, status, ms, error: error.code }
  }

  #outcome(billed: Billed, end: Outcome["end"], later?: Promise<Billed>): Outcome {
    const { call, target, before } = this.parts
    const { fault, framing } = this.meter
    return outcomeOf(call, {
      end,
      status: this.status,
      target,
      attempts: [...before, this.attempt(this.#cause ?? errorIn({ fault }))],
      billed,
      streamed: framing !== undefined,
      firstByteMs: this.#firstByteMs,
      later,
    })
  }
}
