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
import { openTunnel } from "./upgrade.ts"
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
  const vendor = table.vendor(target.vendor)
  const secret = claimed(call, target, vendor, context.breaker)
  const report = (verdict: Verdict): void => context.breaker.report(vendor, secret, target.model, verdict)
  const life = new TunnelLife(vendor.timeouts, context)
  const began = performance.now()
  const attempt = (status: number): Attempt => ({
    vendor: vendor.name,
    secret: secret.name,
    status,
    ms: performance.now() - began,
  })
  const failed = (told: Attempt, reason: string): void => {
    call.attempts = [told]
    new AttemptMetrics(call, vendor.name, context).failed(reason, told.ms)
  }
  const opened = await openTunnel({
    ...upgraded,
    request: call.request,
    origin: vendor.origin,
    path: path + table.filter(vendor.name).query(call.rawQuery === "" ? undefined : call.query, undefined),
    fields: fieldsFor(call, target, secret, table),
    toClient: fields => {
      const own = ["x-request-id", call.id]
      table.filter(vendor.name).toClient({ ...fields, "content-type": undefined }, secret.reveal(), own)
      return own
    },
    connectMs: vendor.timeouts.connectMs + vendor.timeouts.firstByteMs,
    stop: call.stop,
    passed: () => life.renew(),
  }).catch(error => {
    report(error instanceof UpstreamError ? "unreachable" : "unknown") // a client that leaves is no fault of the vendor
    failed(attempt(0), asGatewayError(error).code)
    throw error
  })
  const connected = attempt(opened.state === "refused" ? opened.status : switchedProtocols)
  call.upstreamMs = connected.ms
  if (opened.state === "refused") {
    const fault = table.adapter(vendor.name).fault(opened.status, nothing, {})
    report(verdictOf({ fault })) // a path that the vendor does not know is the client's affair
    failed(connected, fault.kind)
    throw new GatewayError("upstream_unavailable", "The vendor refused the connection.")
  }
  report("ok")
  life.begin(opened)
  const billed = await call.bill({ usage: { requests: 1 }, outputBytes: 0 }, "delivered", target)
  await opened.closed
  life.end()
  call.upstreamMs = performance.now() - began
  const error = call.stopped?.code ?? (life.isOver ? "upstream_timeout" : undefined)
  return ended(call, target, error === undefined ? connected : { ...connected, error }, billed)
}

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
