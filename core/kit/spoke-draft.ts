/** What endpoints that ask a vendor through one of its spokes have in common. */

import type { Adapter, AdapterContext, SpokeRequest } from "../adapter.ts"
import { GatewayError } from "../errors.ts"
import type { Host } from "../host.ts"
import type { Model, Target } from "../offer.ts"
import type { Call, SendDraft } from "../plugin.ts"

/**
 * The adapter's spoke for one ability.
 *
 * @throws GatewayError `internal` (500): it has none. A route's `servedBy` refuses such a target at load, unless the target
 *   serves a relay of the same model
 */
export const spokeOf = <Ability extends "chat" | "embeddings" | "rerank" | "moderation">(
  adapter: Adapter,
  ability: Ability,
): NonNullable<Adapter[Ability]> => {
  const spoke = adapter[ability]
  if (spoke !== undefined) return spoke
  throw new GatewayError("internal", "Internal error", { cause: `adapter ${adapter.name} offers no ${ability}` })
}

/** Ids and times that the gateway gives the answer to a call: `prefix` and 32 hex digits, Unix seconds. */
export const answerId = (prefix: string, { id }: Pick<Call, "id">): string => `${prefix}${id.replaceAll("-", "")}`
export const createdNow = ({ clock }: Pick<Host, "clock">): number => Math.floor(clock.now() / 1000)

/** What a spoke needs to know of the model and of the target that is tried. */
export const spokeContext = ({ catalog }: Pick<Host, "catalog">, model: Model, target: Target): AdapterContext => ({
  model,
  target,
  vendor: catalog.vendors.get(target.vendor)!, // a target of an unknown vendor stops the start
  rules: model.rules,
})

/**
 * @param api    a key of the adapter's `apis`
 * @param answer the client's answer from the vendor's bytes, to be written as JSON. What it throws ends the call
 */
export const sendDraft = (
  api: string,
  { path, body, headers }: SpokeRequest,
  answer: (body: Buffer) => object,
): SendDraft => ({
  verb: "send",
  api,
  path,
  streamed: false,
  body: JSON.stringify(body),
  ...(headers === undefined ? {} : { headers }),
  answer: bytes => ({ body: JSON.stringify(answer(bytes)) }),
})
