/**
 * JSON Schema in the vendor's smaller dialect, for models that take no other: references are put in place, alternatives
 * become `anyOf`, what has no counterpart is said in the description or left out. Looser than the original, never
 * stricter.
 */

import { isObject, type JsonObject, refuse } from "../../../../core/index.ts"
import { list, record, text } from "../../common/json.ts"

/** References multiply: a small schema may name a very large one, or one without end. */
const nodesMax = 10_000
const depthMax = 64

/** How many nodes were made so far: of one schema, or of all that a request brings. */
export interface NodeCount {
  nodes: number
}

interface Walk {
  readonly root: JsonObject
  readonly param: string
  /** References that are being put in place: one that comes again inside of itself is cut. */
  readonly open: readonly string[]
  readonly depth: number
  readonly count: NodeCount
}

/** @throws GatewayError (400) for a schema that is too large to be sent */
export const plainSchema = (schema: JsonObject, param: string, count: NodeCount = { nodes: 0 }): JsonObject =>
  converted(schema, { root: schema, param, open: [], depth: 0, count })

/** One step down. @throws GatewayError (400) */
const deeper = (walk: Walk): Walk => {
  walk.count.nodes++
  if (walk.count.nodes > nodesMax) throw refuse(walk.param, "The schema is too large for this model")
  return { ...walk, depth: walk.depth + 1 }
}

const converted = (schema: unknown, above: Walk): JsonObject => {
  const walk = deeper(above)
  if (walk.depth > depthMax) return { type: "object" }
  const given = record(schema)
  const reference = text(given.$ref)
  if (reference !== undefined) return referred(reference, given, walk)
  const taken = new Set<string>()
  const whole = withAllOf(given, walk, taken)
  const inner = { ...walk, open: [...walk.open, ...taken] }
  const branches = alternatives(whole)
  return branches === undefined ? single(whole, inner) : anyOf(whole, branches, inner)
}

// ---- references and combinations ----

const referred = (reference: string, { $ref, ...beside }: JsonObject, walk: Walk): JsonObject => {
  const target = walk.open.includes(reference) ? undefined : pointedAt(walk.root, reference)
  if (target === undefined) return { type: "object", ...described(beside) }
  const inner = { ...walk, open: [...walk.open, reference] }
  return { ...converted(target, inner), ...described(beside) }
}

const described = ({ description }: JsonObject): JsonObject => (text(description) === undefined ? {} : { description })

/** The part of the schema that a local pointer (RFC 6901) names. */
const pointedAt = (root: JsonObject, reference: string): JsonObject | undefined => {
  if (reference === "#") return root
  if (!reference.startsWith("#/")) return undefined
  let found: unknown = root
  for (const step of reference.slice(2).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~")
    found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
  }
  return isObject(found) ? found : undefined
}

/** @param taken the references that were put in place here, to be added */
const withAllOf = ({ allOf, ...rest }: JsonObject, walk: Walk, taken: Set<string>): JsonObject => {
  let whole: JsonObject = rest
  for (const part of list(allOf)) whole = both(whole, resolved(part, walk, taken))
  return whole
}

/** A part of `allOf`, its own references and parts put in place. */
const resolved = (part: unknown, above: Walk, taken: Set<string>): JsonObject => {
  const walk = deeper(above)
  if (walk.depth > depthMax) return {}
  const reference = text(record(part).$ref)
  if (reference === undefined) return withAllOf(record(part), walk, taken)
  if (taken.has(reference)) return {}
  if (walk.open.includes(reference)) return { type: "object" }
  taken.add(reference)
  return resolved(pointedAt(walk.root, reference), walk, taken)
}

const both = (one: JsonObject, other: JsonObject): JsonObject => ({
  ...one,
  ...other,
  ...(one.properties === undefined && other.properties === undefined
    ? {}
    : { properties: { ...record(one.properties), ...record(other.properties) } }),
  required: [...new Set([...list(one.required), ...list(other.required)])],
})

/** The branches of a choice: `anyOf`, `oneOf`, or several types in one place. */
const alternatives = (schema: JsonObject): readonly unknown[] | undefined => {
  const branches = schema.anyOf ?? schema.oneOf
  if (Array.isArray(branches) && branches.length > 0) return branches
  const { type } = schema
  if (!Array.isArray(type) || type.length === 0) return undefined
  const { description, title, default: preset, ...rest } = schema
  return type.map(one => ({ ...rest, type: one }))
}

const isNull = (schema: unknown): boolean => {
  const { type, const: only, enum: words } = record(schema)
  return type === "null" || only === null || (Array.isArray(words) && words.length === 1 && words[0] === null)
}

const anyOf = (schema: JsonObject, branches: readonly unknown[], walk: Walk): JsonObject => {
  const rest = branches.filter(branch => !isNull(branch))
  const nullable = rest.length < branches.length || schema.nullable === true ? { nullable: true } : {}
  if (rest.length === 0) return { ...described(schema), type: "string", nullable: true }
  const beside = objectParts(schema)
  const inner = rest.map(branch => converted(isObject(branch) ? both(beside, branch) : beside, walk))
  if (inner.length === 1) return { ...inner[0], ...described(schema), ...nullable }
  return { ...described(schema), anyOf: inner, ...nullable }
}

/** What stands beside a choice of objects holds for each of them. */
const objectParts = ({ properties, required }: JsonObject): JsonObject =>
  properties === undefined ? {} : { type: "object", properties, ...(required === undefined ? {} : { required }) }

// ---- one type ----

/** Keywords that mean the same on both sides. */
const kept = [
  "title",
  "nullable",
  "default",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
]

const formats: ReadonlySet<unknown> = new Set(["enum", "date-time", "int32", "int64", "float", "double"])

const single = (schema: JsonObject, walk: Walk): JsonObject => {
  const type = typeOf(schema)
  return {
    type,
    ...(isNull(schema) ? { nullable: true } : {}),
    ...Object.fromEntries(kept.filter(name => schema[name] !== undefined).map(name => [name, schema[name]])),
    ...(formats.has(schema.format) ? { format: schema.format } : {}),
    ...(type === "number" || type === "integer" ? bounds(schema) : {}),
    ...words(schema, type),
    ...(type === "array" ? { items: converted(itemsOf(schema), walk) } : {}),
    ...(type === "object" ? propertiesOf(schema, walk) : {}),
  }
}

const types: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "array", "object"])

/** The vendor demands a type; where none is written, what stands there tells it. */
const typeOf = (schema: JsonObject): string => {
  const type = typeof schema.type === "string" ? schema.type.toLowerCase() : undefined
  if (types.has(type)) return type as string
  if (schema.properties !== undefined || schema.additionalProperties !== undefined) return "object"
  if (schema.items !== undefined || schema.prefixItems !== undefined) return "array"
  const sample = schema.const ?? list(schema.enum)[0]
  return typeof sample === "number" || typeof sample === "boolean" ? typeof sample : "string"
}

/** An exclusive bound becomes the bound itself: what it excludes is one value more. */
const bounds = ({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject): JsonObject => ({
  ...(minimum === undefined && typeof exclusiveMinimum === "number" ? { minimum: exclusiveMinimum } : {}),
  ...(maximum === undefined && typeof exclusiveMaximum === "number" ? { maximum: exclusiveMaximum } : {}),
})

/** Choices are texts here, and none is empty; others are told in words. */
const words = (schema: JsonObject, type: string): JsonObject => {
  const choices = schema.const === undefined ? list(schema.enum) : [schema.const]
  const filled = choices.filter(choice => choice !== null)
  if (filled.length === 0) return described(schema)
  if (type === "string" && filled.every(choice => text(choice) !== undefined)) {
    return { ...described(schema), enum: filled, ...(filled.length < choices.length ? { nullable: true } : {}) }
  }
  const told = `One of: ${choices.map(choice => JSON.stringify(choice)).join(", ")}`
  const before = text(schema.description)
  return { description: before === undefined ? told : `${before} (${told})` }
}

const itemsOf = ({ items, prefixItems }: JsonObject): unknown => {
  if (isObject(items)) return items
  const places = list(Array.isArray(items) ? items : prefixItems)
  return places.length === 0 ? {} : { anyOf: places }
}

/** The vendor refuses an empty `properties`, and a `required` that it does not know. */
const propertiesOf = (schema: JsonObject, walk: Walk): JsonObject => {
  const names = Object.keys(record(schema.properties))
  if (names.length === 0) return {}
  const properties = Object.fromEntries(names.map(name => [name, converted(record(schema.properties)[name], walk)]))
  const required = list(schema.required).filter(name => typeof name === "string" && names.includes(name))
  return { properties, ...(required.length === 0 ? {} : { required }) }
}
