/** The form that the answer must have. */

import { type ChatRequest, isObject, type JsonObject, refuse } from "../../../../core/index.ts"
import { list, record } from "../../common/json.ts"
import type { Abilities } from "./abilities.ts"
import { plainSchema } from "./schema.ts"

/** @throws GatewayError (400) for another format, and for JSON beside tools where the model takes only one of both */
export const formatOf = (
  { response_format: format, tools, model }: ChatRequest,
  { byLevel, jsonSchema }: Abilities,
): JsonObject => {
  if (!isObject(format) || format.type === "text") return {}
  if (format.type !== "json_object" && format.type !== "json_schema") {
    throw refuse("response_format", "'response_format' must be text, json_object or json_schema")
  }
  if (!byLevel && list(tools).length > 0) {
    throw refuse("response_format", `Model '${model}' takes no JSON 'response_format' together with 'tools'`)
  }
  const json = { responseMimeType: "application/json" }
  const { schema } = record(format.json_schema)
  if (format.type === "json_object" || !isObject(schema)) return json
  return jsonSchema
    ? { ...json, responseJsonSchema: withoutDialect(schema) }
    : { ...json, responseSchema: plainSchema(schema, "response_format") }
}

/** The vendor knows one dialect only, and refuses the name of any. */
export const withoutDialect = ({ $schema, ...schema }: JsonObject): JsonObject => schema
