/** A call that becomes a WebSocket: the same secrets, header rules and one bill, settled when the tunnel opens. */

import { asGatewayError, GatewayError } from "../errors.ts"
import type { Secret, Target, Vendor } from "../offer.ts"
import type { Attempt, Billed, Outcome } from "../plugin.ts"
import { AttemptMetrics } from "./attempt-metrics.ts"
import type { Breaker, Verdict } from "./breaker.ts"
import type { GatewayCall } from "./call.ts"
import { affinityOf, type ExchangeContext, type VendorTable } from "./exchange.ts"
import { allResting, verdictOf } from "./failure.ts"
import { pushFields } from "./fields.ts"
import { makeOutcome } from "./outcome.ts"
import { TunnelLife } from "./tunnel-life.ts"
import { openTunnel, type TunnelOptions } from "./upgrade.ts"
import { UpstreamError } from "./upstream.ts"

/** @param path below the vendor's origin, query not included */
export const runTunnel = async (
  call: GatewayCall,
  target: Target,
  path: string,
  table: VendorTable,
  context: ExchangeContext,
): Promise<Outcome> => {
  const { upgraded } = call
  if (upgraded === undefined) throw new GatewayError("upgrade_required", "This path takes WebSocket requests only.")
  call.assertWanted()
  return new TunnelRun(call, target, table, context).run(upgraded, path)
}

class TunnelRun {
  readonly #call: GatewayCall
  readonly #target: Target
  readonly #vendor: Vendor
  readonly #secret: Secret
  readonly #table: VendorTable
  readonly #context: ExchangeContext
  readonly #began = performance.now()

  constructor(call: GatewayCall, target: Target, table: VendorTable, context: ExchangeContext) {
    this.#call = call
    this.#target = target
    this.#vendor = table.vendor(target.vendor)
    this.#secret = claimed(call, target, this.#vendor, context.breaker)
    this.#table = table
    this.#context = context
  }

  async run(upgraded: Upgraded, path: string): Promise<Outcome> {
    const call = this.#call
    const opened = await openTunnel(this.#options(upgraded, path)).catch(error => this.#failed(error))
    if (opened.state === "refused") throw this.#refused(opened.status)
    this.#report("ok")
    const life = new TunnelLife(opened, this.#vendor.timeouts, this.#context)
    const connected = this.#attempt(switchedProtocols)
    call.upstreamMs = connected.ms
    const billed = await call.bill({ usage: { requests: 1 }, outputBytes: 0 }, "delivered", this.#target)
    await opened.closed
    life.end()
    call.upstreamMs = performance.now() - this.#began
    const error = call.stopped?.code ?? (life.isOver ? "upstream_timeout" : undefined)
    return ended(call, this.#target, error === undefined ? connected : { ...connected, error }, billed)
  }

  #options(upgraded: Upgraded, path: string): TunnelOptions {
    const { request, rawQuery, query, id, stop } = this.#call
    const { origin, timeouts } = this.#vendor
    const filter = this.#table.filter(this.#vendor.name)
    return {
      ...upgraded,
      ...{ request, origin, stop },
      path: path + filter.query(rawQuery === "" ? undefined : query, undefined),
      fields: fieldsFor(this.#call, this.#target, this.#secret, this.#table),
      toClient: fields => {
        const own = ["x-request-id", id]
        filter.toClient({ ...fields, "content-type": undefined }, this.#secret.reveal(), own)
        return own
      },
      connectMs: timeouts.connectMs + timeouts.firstByteMs,
    }
  }

  #failed(error: unknown): never {
    // A client that leaves is no fault of the vendor.
    this.#report(error instanceof UpstreamError ? "unreachable" : "unknown")
    this.#count(this.#attempt(0), asGatewayError(error).code)
    throw error
  }

  #refused(status: number): GatewayError {
    const fault = this.#table.adapter(this.#vendor.name).fault(status, nothing, {})
    this.#report(verdictOf({ fault })) // a path that the vendor does not know is the client's affair
    this.#count(this.#attempt(status), fault.kind)
    return new GatewayError("upstream_unavailable", "The vendor refused the connection.")
  }

  #report(verdict: Verdict): void {
    this.#context.breaker.report(this.#vendor, this.#secret, this.#target.model, verdict)
  }

  #attempt(status: number): Attempt {
    return {
      vendor: this.#vendor.name,
      secret: this.#secret.name,
      status,
      ms: performance.now() - this.#began,
    }
  }

  #count(attempt: Attempt, reason: string): void {
    this.#call.attempts = [attempt]
    this.#call.upstreamMs = attempt.ms
    new AttemptMetrics(this.#call, this.#vendor.name, this.#context).failed(reason, attempt.ms)
  }
}

/** The client's side as node handed it over. */
type Upgraded = NonNullable<GatewayCall["upgraded"]>

const switchedProtocols = 101
const nothing = Buffer.alloc(0)

/** @throws GatewayError `upstream_unavailable` (502): every secret rests */
const claimed = (call: GatewayCall, target: Target, vendor: Vendor, breaker: Breaker): Secret => {
  const secret = breaker.order(vendor, affinityOf(call)).find(one => breaker.claim(vendor, one, target.model))
  if (secret !== undefined) return secret
  throw allResting(breaker.rest(vendor, target.model))
}

const ended = (call: GatewayCall, target: Target, attempt: Attempt, { usage, source, micros }: Billed): Outcome =>
  makeOutcome({
    end: attempt.error === undefined ? "delivered" : "broken",
    status: attempt.status,
    target,
    attempts: [attempt],
    bytesOut: 0,
    upstreamMs: call.upstreamMs,
    streamed: true,
    source,
    ...(usage === undefined ? {} : { usage }),
    ...(micros === undefined ? {} : { billedMicros: micros }),
  })

const fieldsFor = (call: GatewayCall, target: Target, secret: Secret, table: VendorTable): string[] => {
  const fields = ["user-agent", "tollgate"]
  table.filter(target.vendor).toVendor(call.headers, fields)
  if (secret.reveal() !== "")
    pushFields(fields, table.adapter(target.vendor).authorise(secret, table.vendor(target.vendor)))
  return fields
}
