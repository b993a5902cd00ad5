/** One call from its head to its last byte: what plugins see of it, and its one moment of billing. */

import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from "node:http"
import type { Duplex } from "node:stream"
import type { UsageReport } from "../adapter.ts"
import { GatewayError } from "../errors.ts"
import type { Target, Usage } from "../offer.ts"
import type { Attempt, Bill, Billed, Billing, Call, Draft, Facts, Outcome, Watcher } from "../plugin.ts"
import { billFor, type UpstreamEnd } from "./billing.ts"
import { type ByteBudget, receiveBody, type ScannedBody, stopReceiving } from "./body.ts"
import { callId } from "./call-id.ts"
import { ClientSide, clientLeft } from "./client.ts"
import { everyHead } from "./fields.ts"
import { makeOutcome } from "./outcome.ts"
import type { CompiledRoute } from "./pipeline.ts"

/** What every call of a process shares. */
export interface CallContext {
  readonly now: () => number
  readonly steady: () => number
  readonly budget: ByteBudget
  readonly bodyGauge: { add(bytes: number): void }
  readonly sandbox: boolean
  readonly basePath: string
  /** The most that a body may have when no step says otherwise. */
  readonly bodyMaxBytes: number
  onUsageMissing(call: GatewayCall, target: Target): void
}

/** A watcher and the plugin that set it. */
export interface OwnedWatcher {
  readonly plugin: string
  readonly watcher: Watcher
}

const noBill: Billed = { source: "none" }
const freeBill: Billed = { source: "none", micros: 0 }
const noUsage: Usage = {}
const noAttempts: readonly Attempt[] = []

export class GatewayCall implements Call {
  readonly id: string
  readonly compiled: CompiledRoute
  readonly params: Readonly<Record<string, string>>
  readonly startedAt: number
  readonly startedTick = performance.now()
  readonly request: IncomingMessage
  readonly client: ClientSide
  readonly watchers: OwnedWatcher[] = []
  /** The plugin that bills. */
  biller: string | undefined
  /** In the server's roster. */
  place: number | undefined
  /** Those that failed: an error answer tells nothing of them, the log does. */
  attempts = noAttempts
  /** Milliseconds waited for the vendor so far. */
  upstreamMs = 0
  /** Since when a step of the pipeline is at work; `Infinity` while it waits for `next()`, a body or an exchange. */
  stepSince = Number.POSITIVE_INFINITY
  /** The plugin (or route) at work, or the last one that was. */
  step = ""
  /** Set by the exchange while it runs: how a stop (deadline, shutdown) reaches the upstream. */
  onStop: ((error: GatewayError) => void) | undefined
  stopped: GatewayError | undefined
  /** Ends a step that hangs, for those around it: they still see the end of the call. */
  giveUp: ((error: GatewayError) => void) | undefined
  /** The client left, and the vendor is read on for its usage: settles when the bill came. */
  later: Promise<unknown> | undefined
  /** On an upgrade request: the bare socket, and what came behind the head. */
  upgraded: { readonly socket: Duplex; readonly head: Buffer } | undefined
  readonly #context: CallContext
  readonly #target: string
  readonly #facts: Partial<Facts> = {}
  readonly #head: string[] = []
  #billing: Billing | undefined
  #billed = false
  #body: Promise<ScannedBody> | undefined
  #bodyDone: (() => void) | undefined
  #query: URLSearchParams | undefined
  #left: AbortController | undefined
  #stop: AbortController | undefined

  constructor(
    context: CallContext,
    compiled: CompiledRoute,
    params: Readonly<Record<string, string>>,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    this.#context = context
    this.compiled = compiled
    this.params = params
    this.request = request
    this.client = new ClientSide(response, context.steady)
    this.startedAt = context.now()
    this.id = callId(this.startedAt)
    this.#target = request.url as string
  }

  get route(): CompiledRoute["route"] {
    return this.compiled.route
  }

  get method(): string {
    return this.request.method as string
  }

  get headers(): IncomingHttpHeaders {
    return this.request.headers
  }

  get path(): string {
    return this.#target.slice(this.#context.basePath.length).replace(/\?.*$/s, "")
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.rawQuery)
    return this.#query
  }

  /** The query as it stands in the request line, without `?`. */
  get rawQuery(): string {
    const mark = this.#target.indexOf("?")
    return mark === -1 ? "" : this.#target.slice(mark + 1)
  }

  get left(): AbortSignal {
    if (this.#left === undefined) {
      this.#left = new AbortController()
      if (this.client.gone) this.#left.abort()
    }
    return this.#left.signal
  }

  get stop(): AbortSignal {
    this.#stop ??= new AbortController()
    if (this.stopped !== undefined) this.#stop.abort(this.stopped)
    return this.#stop.signal
  }

  /** The client went away. */
  leave(): void {
    this.#left?.abort()
  }

  /** Ends the call from outside: its upstream is cancelled, its client told. */
  stopWith(error: GatewayError): void {
    if (this.stopped !== undefined) return
    this.stopped = error
    this.#stop?.abort(error)
    stopReceiving(this.request, error)
    this.onStop?.(error)
  }

  enter(step: string, now: number): void {
    this.step = step
    this.stepSince = now
  }

  get<K extends keyof Facts>(fact: K): Facts[K] {
    const value = this.#facts[fact]
    if (value === undefined) throw new Error(`the fact "${fact}" is not set on ${this.route.path}`)
    return value as Facts[K]
  }

  find<K extends keyof Facts>(fact: K): Facts[K] | undefined {
    return this.#facts[fact]
  }

  set<K extends keyof Facts>(fact: K, value: Facts[K]): Facts[K] {
    if (this.#facts[fact] !== undefined) throw new Error(`the fact "${fact}" is set twice on ${this.route.path}`)
    this.#facts[fact] = value
    return value
  }

  body(): Promise<ScannedBody> {
    this.#body ??= this.#receive()
    return this.#body
  }

  /** Stops the clock of the step at work while something else is awaited; the function returned starts it again. */
  #suspendStep(): () => void {
    const ran = this.stepSince !== Number.POSITIVE_INFINITY
    this.stepSince = Number.POSITIVE_INFINITY
    return () => {
      if (ran) this.stepSince = this.#context.steady()
    }
  }

  async #receive(): Promise<ScannedBody> {
    if (this.stopped !== undefined) throw this.stopped
    const resume = this.#suspendStep() // slow uploads are bounded by the server's request timeout
    const { bytes, done } = await receiveBody(this.request, {
      maxBytes: this.find("bodyMaxBytes") ?? this.#context.bodyMaxBytes,
      budget: this.#context.budget,
      gauge: this.#context.bodyGauge,
      sender: this.client,
    })
    this.#bodyDone = done
    resume()
    return this.compiled.readBody(bytes)
  }

  header(name: string, value: string): void {
    validateHeaderName(name)
    validateHeaderValue(name, value) // else the head would throw, when the vendor has answered and is paid
    this.#head.push(name, value)
  }

  /** What every head carries, and what steps added to this one. */
  headFields(): string[] {
    const gatewayMs = Math.max(0, performance.now() - this.startedTick - this.upstreamMs)
    const fields = everyHead(this.id, this.#context.sandbox, gatewayMs, this.upstreamMs)
    fields.push(...this.#head)
    return fields
  }

  async reply(
    status: number,
    body: string | Buffer | object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const fields = this.headFields()
    const isText = typeof body === "string" || Buffer.isBuffer(body)
    const bytes =
      typeof body === "string" ? Buffer.from(body) : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
    const names = Object.keys(headers)
    if (!isText && !names.includes("content-type")) fields.push("content-type", "application/json")
    for (const name of names) fields.push(name, headers[name] as string)
    fields.push("content-length", String(bytes.length))
    this.client.head(status, fields)
    const resume = this.#suspendStep() // a slow reader does not make the step a hanging one
    await this.client.end(bytes)
    resume()
    return makeOutcome({
      end: this.client.gone ? "abandoned" : "delivered",
      status,
      attempts: [],
      source: "none",
      bytesOut: this.client.bytesOut,
      upstreamMs: this.upstreamMs,
      streamed: false,
    })
  }

  watch(watcher: Watcher): void {
    this.watchers.push({ plugin: this.step, watcher })
  }

  onBill(billing: Billing): void {
    if (this.#billing !== undefined) throw new Error(`two steps bill ${this.route.path}`)
    this.#billing = billing
    this.biller = this.step
  }

  exchange(prepare: (target: Target) => Draft | Promise<Draft>): Promise<Outcome> {
    this.stepSince = Number.POSITIVE_INFINITY // the vendor has deadlines of its own
    return this.compiled.exchange(this, prepare)
  }

  tunnel(target: Target, path: string): Promise<Outcome> {
    this.stepSince = Number.POSITIVE_INFINITY
    return this.compiled.tunnel(this, target, path)
  }

  /** Settles or releases, once: by what was reported, by how the upstream ended. */
  bill(report: UsageReport, end: UpstreamEnd, target: Target, seen = false): Promise<Billed> {
    const { bill, missing } = billFor(report, end, this.find("quote")?.estimated ?? noUsage, seen)
    if (missing && this.#billing !== undefined) this.#context.onUsageMissing(this, target)
    if (bill === undefined) return this.unbilled()
    return this.#settle(missing ? { ...bill, missing } : bill)
  }

  /** Nothing is charged, and the client of a call that might have been is told so. */
  async unbilled(): Promise<Billed> {
    await this.release()
    return this.#billing === undefined ? noBill : freeBill
  }

  async #settle(bill: Bill): Promise<Billed> {
    if (this.#billing === undefined || this.#billed) return { usage: bill.usage, source: bill.source }
    this.#billed = true
    const billing = this.#billing
    const { usage, source } = bill
    try {
      const { durable, micros } = await billing.settle(bill)
      return durable ? { usage, source, micros } : { usage, source }
    } catch (error) {
      await billing.release() // else the hold would be renewed for ever
      throw error
    }
  }

  async release(): Promise<void> {
    if (this.#billing === undefined || this.#billed) return
    this.#billed = true
    await this.#billing.release()
  }

  /** Gives the body's bytes back to the budget. Nothing of the call runs after. */
  done(): void {
    if (this.#bodyDone !== undefined) this.#bodyDone()
    else if (this.#body !== undefined) this.#dropBody(this.#body)
  }

  /** The step failed while its body was still arriving: nobody else would give back what comes later. */
  #dropBody(body: Promise<unknown>): void {
    void body.catch(() => {}).then(() => this.#bodyDone?.())
    stopReceiving(this.request, new GatewayError("client_left", "The call is over."))
  }

  /** Throws when the client left or the call was stopped: nothing should be begun any more. */
  assertWanted(): void {
    if (this.stopped !== undefined) throw this.stopped
    if (this.client.gone) throw clientLeft()
  }
}
