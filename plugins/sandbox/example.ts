/** A value that fits a JSON Schema: the arguments of a tool call, a structured answer. */

import type { JsonObject } from "../../core/index.ts"
import { list, record, records, text } from "./json.ts"

/** Deeper than this only what is required is filled in; recursive schemas end. */
const fullDepth = 4
const depthMax = 16

const formats: Readonly<Record<string, string>> = {
  date: "2026-01-15",
  time: "09:30:00Z",
  "date-time": "2026-01-15T09:30:00Z",
  email: "someone@example.com",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
  ipv4: "192.0.2.1",
}

/**
 * @param schema JSON Schema, or the OpenAPI subset with its types in upper case
 * @param hint   the text that strings are taken from: its last word with a capital letter
 */
export const exampleOf = (schema: unknown, hint: string): unknown => {
  const root = record(schema)
  return fill(root, "", { root, word: wordOf(hint), depth: 0 })
}

interface Place {
  readonly root: JsonObject
  readonly word: string | undefined
  readonly depth: number
}

const fill = (schema: JsonObject, name: string, place: Place): unknown => {
  if (place.depth > depthMax) return null
  const inner = { ...place, depth: place.depth + 1 }
  const told = ["const", "default", "example"].find(key => Object.hasOwn(schema, key))
  if (told !== undefined) return schema[told]
  if (list(schema.enum).length > 0) return list(schema.enum)[0]
  if (typeof schema.$ref === "string") return fill(resolve(place.root, schema.$ref), name, inner)
  const [option] = [...records(schema.anyOf), ...records(schema.oneOf)]
  if (option !== undefined) return fill({ ...schema, anyOf: [], oneOf: [], ...option }, name, inner)
  const parts = records(schema.allOf)
  if (parts.length > 0) return fill(Object.assign({}, schema, { allOf: [] }, ...parts), name, inner)
  return (own(byType, typeOf(schema)) ?? (() => null))(schema, name, inner)
}

/** A schema is a client's: its words may be names that every object inherits. */
const own = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

const byType: Readonly<Record<string, (schema: JsonObject, name: string, place: Place) => unknown>> = {
  object: (schema, _name, place) => {
    const properties = Object.entries(record(schema.properties))
    const required = list(schema.required)
    const wanted = properties.filter(([key]) => place.depth <= fullDepth || required.includes(key))
    return Object.fromEntries(wanted.map(([key, one]) => [key, fill(record(one), key, place)]))
  },
  array: (schema, name, place) => {
    const least = Math.max(typeof schema.minItems === "number" ? schema.minItems : 0, place.depth <= fullDepth ? 1 : 0)
    return Array.from({ length: Math.min(least, 100) }, () => fill(record(schema.items), name, place))
  },
  string: (schema, name, place) => {
    const least = typeof schema.minLength === "number" ? schema.minLength : 0
    const most = typeof schema.maxLength === "number" ? schema.maxLength : Number.POSITIVE_INFINITY
    const value = own(formats, text(schema.format) ?? "") ?? place.word ?? (name === "" ? "example" : `example ${name}`)
    return value.padEnd(Math.min(least, 10_000), ".").slice(0, most)
  },
  integer: schema => Math.ceil(numberOf(schema)),
  number: schema => numberOf(schema),
  boolean: () => true,
  null: () => null,
}

const numberOf = ({ minimum, exclusiveMinimum, maximum }: JsonObject): number => {
  if (typeof minimum === "number") return minimum
  if (typeof exclusiveMinimum === "number") return exclusiveMinimum + 1
  return Math.min(1, typeof maximum === "number" ? maximum : 1)
}

/** Some schemas leave the type out; properties tell it. */
const typeOf = (schema: JsonObject): string => {
  const type = Array.isArray(schema.type) ? schema.type.find(one => one !== "null") : schema.type
  if (typeof type === "string") return type.toLowerCase()
  return schema.items === undefined ? "object" : "array"
}

/** `#/$defs/name`: only within the schema itself. */
const resolve = (root: JsonObject, reference: string): JsonObject =>
  reference
    .split("/")
    .slice(1)
    .reduce<JsonObject>((at, key) => (Object.hasOwn(at, key) ? record(at[key]) : {}), root)

/** The first word of a question is no name. */
const wordOf = (hint: string): string | undefined => hint.match(/(?<=\S\s+)\p{Lu}[\p{L}\p{N}'-]*/gu)?.at(-1)
