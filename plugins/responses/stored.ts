/** Whose stored answers are whose: an id is good for the member that made it, with the secret that made it. */

import { type Attempt, type Body, type Call, type Host, invalidInput, isObject } from "../../core/index.ts"

/** So long the vendor keeps what it stored. */
const lifeMs = 30 * 24 * 3_600_000
const idMax = 256

/** Where an earlier answer lies. */
export interface Origin {
  readonly vendor: string
  readonly secret: string
}

const keyOf = (call: Call, id: string): string => {
  const { organisation, member } = call.get("principal")
  return `response:${organisation}/${member}:${id}`
}

/**
 * The place of what the request follows up; `undefined` when it follows up nothing.
 *
 * @throws GatewayError `not_found` (404): unknown, expired or another member's, which all look the same
 */
export const originOf = async (host: Host, call: Call, body: Body): Promise<Origin | undefined> => {
  const origins = await Promise.all(
    followed(body).map(async ({ field, id }) => {
      const known = id.length > idMax ? undefined : await host.store.records.get(keyOf(call, id))
      if (known !== undefined) return JSON.parse(known) as Origin
      const thing = field === "conversation" ? "Conversation" : "Previous response"
      throw host.error("not_found", `${thing} with id '${id.slice(0, idMax)}' not found.`, {
        param: field,
        reason: `${field.replace("_id", "")}_not_found`,
      })
    }),
  )
  return origins[0]
}

const followed = (body: Body): readonly { readonly field: string; readonly id: string }[] =>
  ["previous_response_id", "conversation"].flatMap(field => {
    const value = body.field(field)
    const id = isObject(value) ? value.id : value
    if (id === undefined || id === null) return []
    if (typeof id === "string") return [{ field, id }]
    throw invalidInput(["body", field], "Input should be a valid string", "string_type")
  })

/** Remembers where an answer lies. Without the record its follow-up is 404; the answer itself is not taken away. */
export const remember = async (host: Host, call: Call, id: string, { vendor, secret }: Attempt): Promise<void> => {
  try {
    await host.store.records.put(keyOf(call, id), JSON.stringify({ vendor, secret } satisfies Origin), lifeMs)
  } catch (cause) {
    host.log.warn({ id: call.id, cause }, "a stored answer could not be recorded")
  }
}
