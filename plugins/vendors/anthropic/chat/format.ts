/** What form the answer must have, and the means by which this model is brought to it. */

import { type ChatContext, type ChatRequest, isObject, type JsonObject, refuse } from "../../../../core/index.ts"
import { record, text } from "../../common/json.ts"
import { closedSchema, parametersSchema } from "./schema.ts"

export type Format =
  | { readonly by: "nothing" }
  /** Words at the end of the system text. */
  | { readonly by: "instruction"; readonly text: string }
  /** The model's own structured outputs. */
  | { readonly by: "output_config"; readonly schema: unknown }
  /** A tool whose input becomes the content of the answer. */
  | { readonly by: "tool"; readonly description: string; readonly schema: JsonObject }

const nothing: Format = { by: "nothing" }

const onlyJson = "Answer with one JSON object and nothing else: no other text, no code fence."

/** @throws GatewayError (400) for a format of another type */
export const formatOf = ({ response_format }: ChatRequest, { model, rules }: FormatContext): Format => {
  if (!isObject(response_format)) return nothing
  const { type } = response_format
  if (type === "text") return nothing
  if (type === "json_object") return { by: "instruction", text: onlyJson }
  if (type !== "json_schema")
    throw refuse("response_format", "'response_format' must be text, json_object or json_schema")
  const { schema, description } = record(response_format.json_schema)
  if (!isObject(schema)) return { by: "instruction", text: onlyJson }
  if (model.capabilities.includes("structured_output")) return { by: "output_config", schema: closedSchema(schema) }
  // A model that cannot be forced to call a tool is asked in words.
  if (rules.refuse?.includes("tool_choice") || schema.type !== "object")
    return { by: "instruction", text: inWords(schema) }
  return { by: "tool", description: text(description) ?? "Gives the answer.", schema: parametersSchema(schema) }
}

type FormatContext = Pick<ChatContext, "model" | "rules">

const inWords = (schema: JsonObject): string =>
  `Answer with one JSON value and nothing else: no other text, no code fence. It must match this JSON Schema:\n${JSON.stringify(schema)}`
