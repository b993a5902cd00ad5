/** What translations of whole answers have in common. */

import type { ChatContext, JsonSchema } from "../../../core/index.ts"
import { type JsonObject, parse, record } from "./json.ts"

/** The answer as an object, whatever it is. */
export const answerIn = (body: Buffer): JsonObject => record(parse(body))

/** What every chat completion, or chunk of one, begins with. */
export const headOf = ({ id, created, model }: ChatContext, object: "chat.completion" | "chat.completion.chunk") => ({
  id,
  object,
  created,
  model: model.name,
})

/**
 * The id of a tool call that the vendor gave none: of this answer and its count of such calls, so that equal calls in
 * parallel differ. Short enough for OpenAI, which takes 40 characters.
 */
export const madeCallId = ({ id }: Pick<ChatContext, "id">, at: number): string =>
  `call_${id.replace(/^chatcmpl-/, "")}_${at}`

/** What `apiPath` reads. */
export const apiPathOption: JsonSchema = {
  type: "string",
  pattern: "^(/[A-Za-z0-9._~-]+)*$",
  examples: ["/api/paas/v4"],
}

/** The options of adapters that ask for it alone. */
export const apiPathOptions: JsonSchema = {
  type: "object",
  additionalProperties: false,
  properties: { api_path: apiPathOption },
}

/** Those of the fields that the request has. */
export const picked = (request: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    names.flatMap(name => (request[name] === undefined || request[name] === null ? [] : [[name, request[name]]])),
  )
