/** A call that becomes a WebSocket: the same secrets, header rules and one bill, settled when the tunnel opens. */

import { GatewayError } from "../errors.ts"
import type { Secret, Target } from "../offer.ts"
import type { Attempt, Outcome } from "../plugin.ts"
import type { GatewayCall } from "./call.ts"
import type { ExchangeContext, VendorTable } from "./exchange.ts"
import { pushFields } from "./fields.ts"
import { makeOutcome } from "./outcome.ts"
import { openTunnel } from "./upgrade.ts"

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
  const vendor = table.vendor(target.vendor)
  const secret = context.breaker
    .order(vendor, call.get("principal").member)
    .find(one => context.breaker.claim(vendor, one, target.model))
  if (secret === undefined)
    throw new GatewayError("upstream_unavailable", "The vendor is not available. Try again later.")
  const began = performance.now()
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
  }).catch(error => {
    context.breaker.report(vendor, secret, target.model, "unreachable")
    throw error
  })
  call.upstreamMs += performance.now() - began
  const status = opened.state === "open" ? 101 : opened.status
  const attempt: Attempt = { vendor: vendor.name, secret: secret.name, status, ms: performance.now() - began }
  if (opened.state === "refused") {
    context.breaker.report(vendor, secret, target.model, status === 401 || status === 403 ? "account" : "failed")
    throw new GatewayError("upstream_unavailable", "The vendor refused the connection.")
  }
  context.breaker.report(vendor, secret, target.model, "ok")
  const billed = await call.bill({ usage: { requests: 1 }, outputBytes: 0 }, "delivered", target)
  call.onStop = () => opened.close()
  await opened.closed
  call.onStop = undefined
  return makeOutcome({
    end: call.stopped === undefined ? "delivered" : "broken",
    status,
    target,
    attempts: [call.stopped === undefined ? attempt : { ...attempt, error: call.stopped.code }],
    bytesOut: 0,
    upstreamMs: call.upstreamMs,
    streamed: true,
    source: billed.source,
    ...(billed.usage === undefined ? {} : { usage: billed.usage }),
    ...(billed.micros === undefined ? {} : { billedMicros: billed.micros }),
  })
}

const fieldsFor = (call: GatewayCall, target: Target, secret: Secret, table: VendorTable): string[] => {
  const fields = ["user-agent", "tollgate"]
  table.filter(target.vendor).toVendor(call.headers, fields)
  if (secret.reveal() !== "")
    pushFields(fields, table.adapter(target.vendor).authorise(secret, table.vendor(target.vendor)))
  return fields
}
