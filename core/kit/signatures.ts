/** Thought signatures of tool calls: kept for the member, because clients send back the call without them. */

import type { ChatRequest } from "../adapter.ts"
import type { Host } from "../host.ts"
import type { Call } from "../plugin.ts"
import { isObject } from "./walk.ts"

/** How long an agent may pause between a tool call and its result. */
const lifeMs = 24 * 3_600_000
/** The latest calls of a history; older turns need none. */
const callsMax = 64
const idMax = 256

export const signatureStore = (host: Pick<Host, "store" | "log">, call: Pick<Call, "id" | "get">) => {
  const { organisation, member } = call.get("principal")
  const keyOf = (id: string): string => `signature:${organisation}/${member}:${id}`
  return {
    /** The signatures that are known of the request's tool calls. */
    async find(request: ChatRequest): Promise<ReadonlyMap<string, string>> {
      const ids = toolCallIds(request).slice(-callsMax)
      const values = await Promise.all(ids.map(id => host.store.records.get(keyOf(id))))
      return new Map(ids.flatMap((id, at) => (values[at] === undefined ? [] : [[id, values[at]] as const])))
    },
    /** A signature that is lost costs the next turn a little quality, never this answer. */
    keep(id: string, signature: string): void {
      host.store.records.put(keyOf(id), signature, lifeMs).catch(cause => {
        host.log.warn({ id: call.id, cause }, "a thought signature could not be kept")
      })
    },
  }
}

const toolCallIds = ({ messages }: ChatRequest): readonly string[] =>
  messages
    .flatMap(({ tool_calls }) => (Array.isArray(tool_calls) ? tool_calls : []))
    .flatMap(one => (isObject(one) && typeof one.id === "string" && one.id.length <= idMax ? [one.id] : []))
