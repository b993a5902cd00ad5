/** Tool calls of an answer as the hub writes them. */

import { type ChatContext, type JsonObject, unreadable } from "../../../../core/index.ts"
import { madeCallId } from "../../common/answers.ts"
import { record, text } from "../../common/json.ts"
import { extraContent, keptForm } from "./signatures.ts"

export interface CallContext extends Pick<ChatContext, "keep" | "target"> {
  /** The client's names of tools by the aliases that were sent. */
  readonly originals: ReadonlyMap<string, string>
  /** For a call that the vendor gave no id. */
  readonly nextId: () => string
}

/** Of one answer, with all of its candidates. */
export const callContext = ({ id, keep, target }: ChatContext, memo: unknown): CallContext => {
  let made = 0
  return {
    target,
    ...(keep === undefined ? {} : { keep }),
    originals: memo instanceof Map ? memo : new Map(),
    nextId: () => madeCallId({ id }, made++),
  }
}

/**
 * Keeps the signature for the next turn.
 *
 * @throws GatewayError (502) for a call of a nameless tool
 */
export const toolCall = (
  call: JsonObject,
  signature: string | undefined,
  written: string,
  { keep, target, originals, nextId }: CallContext,
): JsonObject => {
  const name = text(call.name)
  if (name === undefined) throw unreadable()
  const id = text(call.id) ?? nextId()
  if (signature !== undefined) keep?.(id, keptForm(signature, { target }))
  return {
    id,
    type: "function",
    function: { name: originals.get(name) ?? name, arguments: written },
    ...extraContent(signature),
  }
}

export const argumentsText = (call: JsonObject): string => JSON.stringify(record(call.args))
