/** Drafts of endpoints that ask a vendor through its spoke and read the answer whole. */

import type { AdapterContext, SpokeRequest } from "../adapter.ts"
import type { Host } from "../host.ts"
import type { Model, Target } from "../offer.ts"
import type { SendDraft } from "../plugin.ts"

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
