/** Tool calls of an answer as the hub writes them. */

import { randomBytes } from "node:crypto"
import type { ChatContext, JsonObject } from "../../../../core/index.ts"
import { record, text } from "../../common/json.ts"
import { unreadable } from "./candidates.ts"
import { extraContent, keptForm } from "./signatures.ts"

export interface CallContext extends Pick<ChatContext, "keep" | "target"> {
  /** The client's names of tools by the aliases that were sent. */
  readonly originals: ReadonlyMap<string, string>
}

export const callContext = ({ keep, target }: ChatContext, memo: unknown): CallContext => ({
  target,
  ...(keep === undefined ? {} : { keep }),
  originals: memo instanceof Map ? memo : new Map(),
})

/** The vendor's id where it gave one; else 24 random characters, because equal calls in parallel need their own. */
const idOf = (call: JsonObject): string => text(call.id) ?? `call_${randomBytes(18).toString("base64url")}`

/**
 * Keeps the signature for the next turn.
 *
 * @throws GatewayError (502) for a call of a nameless tool
 */
export const toolCall = (
  call: JsonObject,
  signature: string | undefined,
  written: string,
  { keep, target, originals }: CallContext,
): JsonObject => {
  const name = text(call.name)
  if (name === undefined) throw unreadable()
  const id = idOf(call)
  if (signature !== undefined) keep?.(id, keptForm(signature, { target }))
  return {
    id,
    type: "function",
    function: { name: originals.get(name) ?? name, arguments: written },
    ...extraContent(signature),
  }
}

export const argumentsText = (call: JsonObject): string => JSON.stringify(record(call.args))
