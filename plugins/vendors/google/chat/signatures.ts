/**
 * Thought signatures. Clients drop them, so they are kept by tool-call id. One belongs to the model that made it: another
 * refuses it as corrupted. It is opaque: never recoded, never moved to another part.
 */

import type { ChatContext, JsonObject } from "../../../../core/index.ts"
import { parse, record, text } from "../../common/json.ts"

/** The vendor's documented word for histories whose signature is not known. */
const unknown = "skip_thought_signature_validator"

type Maker = Pick<ChatContext, "target">

const makerOf = ({ target }: Maker): string => `${target.vendor}/${target.model}`

/** What the store keeps of a signature. */
export const keptForm = (signature: string, maker: Maker): string =>
  JSON.stringify({ maker: makerOf(maker), signature })

/** `undefined` when nothing is kept; without a signature when another model made what is kept. */
const keptBy = (kept: string | undefined, maker: Maker): { readonly signature?: string } | undefined => {
  if (kept === undefined) return undefined
  const found = record(parse(Buffer.from(kept)))
  const signature = text(found.signature)
  return found.maker === makerOf(maker) && signature !== undefined ? { signature } : {}
}

/** What the vendor's own compatible endpoint writes beside a tool call. */
export const extraContent = (signature: string | undefined): JsonObject =>
  signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }

/**
 * The signature to send with a tool call of the history. What was kept is surer than what a client sends back.
 *
 * @param needed the vendor refuses this call without one
 */
export const signatureFor = (
  call: JsonObject,
  context: Pick<ChatContext, "signatures" | "target">,
  needed: boolean,
): string | undefined => {
  const kept = keptBy(context.signatures?.get(text(call.id) ?? ""), context)
  const sent = text(record(record(call.extra_content).google).thought_signature)
  return (kept === undefined ? sent : kept.signature) ?? (needed ? unknown : undefined)
}
