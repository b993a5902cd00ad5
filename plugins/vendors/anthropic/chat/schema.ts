/** JSON Schemas of chat requests as the vendor takes them. */

import { isObject, type JsonObject } from "../../../../core/index.ts"

/** A tool's parameters: an object in any case, without the word for the schema's own version. */
export const parametersSchema = (schema: unknown): JsonObject => {
  const { $schema, ...rest } = isObject(schema) ? schema : {}
  return { ...rest, type: "object", properties: isObject(rest.properties) ? rest.properties : {} }
}

/**
 * A schema that the vendor compiles to a grammar (structured outputs, strict tools): every object is closed, and the
 * bounds that a grammar cannot express are told to the model in words.
 */
export const closedSchema = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(closedSchema)
  if (!isObject(schema)) return schema
  const kept: Record<string, unknown> = {}
  const bounds: string[] = []
  for (const [word, value] of Object.entries(schema)) {
    if (isBound(word, value)) bounds.push(`${word}: ${JSON.stringify(value)}`)
    else if (word !== "$schema") kept[word] = inner(word, value)
  }
  // A map of any names cannot be closed without emptying it: the vendor says so itself.
  if (isObjectSchema(kept) && !isObject(kept.additionalProperties)) kept.additionalProperties = false
  if (bounds.length > 0) kept.description = described(kept.description, bounds)
  return kept
}

const bounding: ReadonlySet<string> = new Set([
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
])

/** A list may be asked to be empty or not, no more. */
const isBound = (word: string, value: unknown): boolean =>
  (bounding.has(word) && typeof value !== "object") || (word === "minItems" && value !== 0 && value !== 1)

/** Words whose values are schemas by name: those names are the client's own. */
const maps: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"])
/** Words whose values are data, not schemas. */
const data: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"])

const inner = (word: string, value: unknown): unknown => {
  if (data.has(word)) return value
  if (!maps.has(word) || !isObject(value)) return closedSchema(value)
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, closedSchema(schema)]))
}

const isObjectSchema = ({ type, properties }: JsonObject): boolean =>
  type === "object" || (Array.isArray(type) && type.includes("object")) || isObject(properties)

const described = (description: unknown, bounds: readonly string[]): string => {
  const told = `(${bounds.join(", ")})`
  return typeof description === "string" && description !== "" ? `${description} ${told}` : told
}
