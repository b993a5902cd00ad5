/** The request towards a vendor: built anew from allow-lists, the credential last, the body's bytes as they came. */

import type { Adapter } from "../adapter.ts"
import type { Secret, Target, Vendor } from "../offer.ts"
import type { Draft } from "../plugin.ts"
import { spliceModel } from "./body.ts"
import type { GatewayCall } from "./call.ts"
import { type FieldFilter, pushFields } from "./fields.ts"
import type { UpstreamRequest } from "./upstream.ts"

/** One try's addressee. */
export interface Candidate {
  readonly target: Target
  readonly vendor: Vendor
  readonly secret: Secret
}

export const outgoing = async (
  call: GatewayCall,
  draft: Draft,
  { target, vendor, secret }: Candidate,
  adapter: Adapter,
  filter: FieldFilter,
): Promise<UpstreamRequest> => {
  const body = await bodyFor(call, draft, target)
  const clientQuery = draft.verb === "relay" && call.rawQuery !== "" ? call.query : undefined
  const fields: string[] = ["user-agent", "tollgate", "accept-encoding", "identity"]
  if (draft.verb === "relay") filter.toVendor(call.headers, fields)
  else filter.own(call.headers, fields)
  pushFields(fields, draft.headers)
  if (secret.reveal() !== "") pushFields(fields, adapter.authorise(secret, vendor))
  return {
    vendor,
    secret,
    method: draft.method ?? "POST",
    path: draft.path + filter.query(clientQuery, draft.verb === "relay" ? draft.query : undefined),
    fields,
    body,
    streamed: draft.streamed,
  }
}

const bodyFor = async (call: GatewayCall, draft: Draft, target: Target): Promise<readonly Buffer[]> => {
  if (draft.verb !== "relay") return [typeof draft.body === "string" ? Buffer.from(draft.body) : draft.body]
  if (draft.method === "GET" || call.route.upgrade === true) return []
  const body = await call.body()
  if (body.bytes.length === 0) return []
  return draft.splice === false || body.field("model") === target.model ? [body.bytes] : spliceModel(body, target.model)
}
