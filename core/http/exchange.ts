/** Tries the candidates of a call in order until one answers: secrets, fallbacks, retries, the breaker. */

import type { Adapter, Dialect } from "../adapter.ts"
import { asGatewayError, GatewayError } from "../errors.ts"
import type { Target, Vendor } from "../offer.ts"
import type { Attempt, Call, Clock, Draft, Log, Metrics, Outcome } from "../plugin.ts"
import type { Failure, Result } from "./answer.ts"
import { AttemptRun } from "./attempt.ts"
import { AttemptMetrics } from "./attempt-metrics.ts"
import { type Breaker, type Rest, shortest, type Verdict } from "./breaker.ts"
import type { GatewayCall } from "./call.ts"
import type { Deadlines } from "./deadlines.ts"
import type { Drains } from "./drains.ts"
import {
  allResting,
  bodyContains,
  errorOf,
  mayPass,
  reasonOf,
  textContains,
  verdictOf,
  withoutSecret,
} from "./failure.ts"
import type { FieldFilter } from "./fields.ts"
import { makeOutcome } from "./outcome.ts"
import { type Candidate, outgoing } from "./outgoing.ts"
import type { Upstream } from "./upstream.ts"

/** All attempts of one call together; more would keep a client waiting for what is broken. */
const attemptsMax = 4
/** Between two tries with the same secret. */
const backoff = { firstMs: 100, mostMs: 2_000 }

/** The vendors of one generation, by name. */
export interface VendorTable {
  vendor(name: string): Vendor
  adapter(vendor: string): Adapter
  filter(vendor: string): FieldFilter
  dialect(name: string): Dialect
}

/** What belongs to the process. */
export interface ExchangeContext {
  readonly upstream: Upstream
  readonly breaker: Breaker
  readonly drains: Drains
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly random: () => number
  readonly metrics: Metrics
  readonly log: Log
}

/** What keeps a conversation, else a member, with the same secret. */
export const affinityOf = (call: GatewayCall): string => {
  const principal = call.find("principal")
  const member = principal === undefined ? "" : `${principal.organisation}/${principal.member}`
  return call.find("conversation") ?? member
}

interface Failed {
  readonly failure: Failure
  readonly candidate: Candidate
  readonly draft: Draft
}

export class Exchange {
  readonly #call: GatewayCall
  readonly #prepare: Parameters<Call["exchange"]>[0]
  readonly #table: VendorTable
  readonly #context: ExchangeContext
  readonly #tried: Attempt[] = []
  #last: Failed | undefined
  /** The same, until it is counted. */
  #uncounted: Failed | undefined

  constructor(
    call: GatewayCall,
    prepare: Parameters<Call["exchange"]>[0],
    table: VendorTable,
    context: ExchangeContext,
  ) {
    this.#call = call
    this.#prepare = prepare
    this.#table = table
    this.#context = context
  }

  async run(): Promise<Outcome> {
    try {
      return await this.#tryAll()
    } catch (error) {
      this.#count() // of the last attempt no outcome tells
      throw error
    }
  }

  async #tryAll(): Promise<Outcome> {
    for (const candidate of this.#candidates()) {
      if (this.#last !== undefined && !this.#goesOn(this.#last.failure)) break
      if (this.#makesWay(candidate)) continue
      const draft = await this.#draftFor(candidate.target)
      if (draft === undefined) continue
      if (draft.secret !== undefined && draft.secret !== candidate.secret.name) continue
      if (!this.#context.breaker.claim(candidate.vendor, candidate.secret, candidate.target.model)) continue
      if (this.#last !== undefined) await this.#passOver(this.#last, candidate)
      const outcome = (await this.#attempt(candidate, draft)) ?? (await this.#changed(candidate))
      if (outcome !== undefined) return outcome
    }
    if (this.#last === undefined) throw allResting(this.#rest())
    this.#call.assertWanted()
    return this.#refuse(this.#last)
  }

  /** Every pair of target and secret, best first; a single one gets a second chance. */
  #candidates(): readonly Candidate[] {
    const affinity = affinityOf(this.#call)
    const pairs: Candidate[] = []
    for (const target of this.#call.get("plan")) {
      const vendor = this.#table.vendor(target.vendor)
      for (const secret of this.#context.breaker.order(vendor, affinity)) pairs.push({ target, vendor, secret })
    }
    return pairs.length === 1 ? [...pairs, ...pairs] : pairs
  }

  /** Another secret of the target that failed makes way when there is but one try left for each fallback. */
  #makesWay({ target }: Candidate): boolean {
    const plan = this.#call.get("plan")
    const fallbacks = plan.length - 1 - plan.indexOf(target)
    return target === this.#last?.candidate.target && fallbacks > 0 && attemptsMax - this.#tried.length <= fallbacks
  }

  /** A fallback that has no words for the request is passed by: the target before it had, and may serve it again soon. */
  async #draftFor(target: Target): Promise<Draft | undefined> {
    try {
      return await this.#prepare(target)
    } catch (error) {
      if (target === this.#call.get("plan")[0] || asGatewayError(error).kind.source !== "client") throw error
      return undefined
    }
  }

  #goesOn(failure: Failure): boolean {
    const { client, stopped, route } = this.#call
    if (client.gone || stopped !== undefined || this.#tried.length >= attemptsMax) return false
    return mayPass(failure, route.charge !== "acceptance")
  }

  async #attempt(candidate: Candidate, draft: Draft): Promise<Outcome | undefined> {
    this.#count()
    let result: Result
    try {
      result = await this.#send(candidate, draft)
    } catch (error) {
      this.#report(candidate, "unknown") // claimed and not used: another call may probe
      throw error
    }
    if ("outcome" in result) {
      this.#report(candidate, result.verdict)
      return result.outcome
    }
    const { failure } = result
    this.#report(candidate, verdictOf(failure), failure.fault?.retryAfterMs)
    this.#tried.push(failure.attempt)
    this.#call.attempts = [...this.#call.attempts, failure.attempt]
    this.#last = { failure, candidate, draft }
    this.#uncounted = this.#last
    return undefined
  }

  #report({ vendor, secret, target }: Candidate, verdict: Verdict, restMs?: number): void {
    this.#context.breaker.report(vendor, secret, target.model, verdict, restMs)
  }

  /** The draft itself may know a change that the vendor would take, once. */
  async #changed(candidate: Candidate): Promise<Outcome | undefined> {
    const { failure, draft } = this.#last as Failed
    const changed = failure.fault?.kind === "invalid" ? draft.retry?.(failure.fault) : undefined
    if (changed === undefined) return undefined
    this.#countStep("upstream_retries_total", this.#last as Failed)
    return this.#attempt(candidate, changed)
  }

  async #send(candidate: Candidate, draft: Draft): Promise<Result> {
    const { vendor, secret, target } = candidate
    const { upstream, drains, clock, deadlines } = this.#context
    const call = this.#call
    call.assertWanted()
    const adapter = this.#table.adapter(vendor.name)
    const filter = this.#table.filter(vendor.name)
    const dialect = this.#table.dialect(call.route.dialect)
    const api = adapter.apis[draft.api]
    if (api === undefined)
      throw new GatewayError("internal", "Internal error", { cause: `${adapter.name} has no api ${draft.api}` })
    const request = await outgoing(call, draft, candidate, adapter, filter)
    const run = new AttemptRun({
      call,
      draft,
      target,
      vendor,
      secret,
      adapter,
      api,
      filter,
      before: this.#tried,
      drains,
      clock,
      deadlines,
      dialect,
      metrics: this.#metricsOf(vendor),
    })
    run.start(upstream.send(request, run))
    return run.result
  }

  /** An attempt that something followed, or that ends in an error of ours; the last one of an outcome is its watchers'. */
  #count(): void {
    if (this.#uncounted === undefined) return
    const { failure, candidate } = this.#uncounted
    this.#uncounted = undefined
    this.#metricsOf(candidate.vendor).failed(reasonOf(failure), failure.attempt.ms)
  }

  #metricsOf({ name }: Vendor): AttemptMetrics {
    return new AttemptMetrics(this.#call, name, this.#context)
  }

  /** Counts the step from a failed candidate to the next; waits, jittered, only before the same secret again. */
  async #passOver(failed: Failed, next: Candidate): Promise<void> {
    const { candidate, failure } = failed
    const { random } = this.#context
    this.#countStep(next.target === candidate.target ? "upstream_retries_total" : "upstream_fallbacks_total", failed)
    if (next.target !== candidate.target || next.secret !== candidate.secret) return
    const base = backoff.firstMs * 2 ** (this.#tried.length - 1)
    await this.#pause(Math.min(backoff.mostMs, Math.max(base * (0.5 + random()), failure.fault?.retryAfterMs ?? 0)))
  }

  #countStep(name: "upstream_retries_total" | "upstream_fallbacks_total", { candidate, failure }: Failed): void {
    this.#context.metrics.product(name).child(candidate.vendor.name, reasonOf(failure)).add()
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#context.clock.after(ms, resolve)
      this.#call.client.onGone(() => {
        cancel()
        resolve()
      })
    })
  }

  /** A relay passes the vendor's error on as it stands; everyone else gets the gateway's own words. */
  async #refuse(failed: Failed): Promise<Outcome> {
    const { failure, candidate, draft } = failed
    const error = ownError(failed)
    const { raw } = failure
    if (error !== undefined || raw === undefined) throw error ?? new GatewayError("internal", "Internal error")
    const call = this.#call
    await call.release()
    const fields = call.headFields()
    this.#table.filter(candidate.vendor.name).toClient(raw.fields, candidate.secret.reveal(), fields)
    fields.push("content-length", String(raw.body.length))
    call.client.head(raw.status, fields)
    await call.client.end(raw.body)
    return makeOutcome({
      end: "refused",
      status: raw.status,
      target: candidate.target,
      attempts: this.#tried,
      source: "none",
      bytesOut: call.client.bytesOut,
      upstreamMs: call.upstreamMs,
      streamed: draft.streamed,
    })
  }

  /** Until the first candidate may be tried again. */
  #rest(): Rest {
    const { breaker } = this.#context
    const plan = this.#call.get("plan")
    return shortest(plan.map(target => breaker.rest(this.#table.vendor(target.vendor), target.model)))
  }
}

/** The error of ours that stands in for a vendor's answer; `undefined` when that passes as it is. */
const ownError = ({ failure, candidate, draft }: Failed): GatewayError | undefined => {
  const { error, fault, raw } = failure
  if (fault === undefined) return error && withoutSecret(error, candidate.secret)
  const { secret } = candidate
  if (textContains(fault.message, secret) || (raw !== undefined && bodyContains(raw.body, secret)))
    return errorOf({ ...fault, kind: "account" })
  // A redirect is a mistake of the configuration: not followed, not told. 304 answers a question of the client's.
  const passes = raw !== undefined && (raw.status >= 400 || raw.status === 304)
  return draft.verb === "relay" && passes && fault.kind !== "account" ? undefined : errorOf(fault)
}
