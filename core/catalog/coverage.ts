/** Whether a price card has a row for everything that a client may ask for, and charges for what a call can use. */

import {
  type Bucket,
  inputBuckets,
  type JsonSchema,
  type ModelType,
  outputBuckets,
  type PriceCard,
  type PriceLine,
} from "../offer.ts"

type Table = Extract<PriceLine, { kind: "table" }>

/** More combinations than this are a schema that should not be priced by a table. */
const combinationsMax = 10_000
const integersMax = 1000

/**
 * What a card's tables leave unpriced, in words; empty when every combination of the parameters has a row.
 *
 * @param parameters the model's JSON Schema; a parameter of a table needs a default and a finite set of values
 */
export const uncovered = (card: PriceCard, parameters: JsonSchema | undefined): readonly string[] => {
  const lines = [...card.lines, ...card.when.flatMap(row => row.lines)]
  return lines.flatMap(line => (line.kind === "table" ? gaps(line, propertiesOf(parameters)) : []))
}

const languageBuckets = [...inputBuckets, ...outputBuckets, "web_search", "requests"] as const

/** All that a call of such a model can use. A type that is not here may use anything. */
const usable: { readonly [Type in ModelType]?: readonly Bucket[] } = {
  llm: languageBuckets,
  decision: languageBuckets,
  guard: languageBuckets,
  embedding: ["input", "characters", "requests"],
  rerank: ["input", "documents", "requests"],
  search: ["requests"],
}

/** Items of a card that no call of such a model can ever use. */
export const neverUsed = (card: PriceCard, type: ModelType): readonly string[] => {
  const buckets = usable[type]
  const lines = [...card.lines, ...card.when.flatMap(row => row.lines)]
  const isNeverUsed = (line: PriceLine): boolean =>
    line.kind !== "vendor_cost" && line.bucket !== undefined && buckets?.includes(line.bucket) === false
  return [...new Set(lines.filter(isNeverUsed).map(line => line.item))]
}

const gaps = (table: Table, properties: ReadonlyMap<string, JsonSchema>): readonly string[] => {
  const faults = [
    ...table.keys.flatMap(key => keyFault(key, properties.get(key))),
    ...timesFault(table.times, properties),
  ]
  if (faults.length > 0) return faults.map(fault => `${table.item}: ${fault}`)
  const combinations = table.keys.reduce<readonly (readonly string[])[]>(
    (rows, key) =>
      rows.flatMap(row => valuesOf(properties.get(key)!)!.map(value => [...row, value])).slice(0, combinationsMax),
    [[]],
  )
  return combinations
    .filter(values => !table.rows.has(values.join("\n")))
    .map(values => `${table.item}: no row for ${table.keys.map((key, index) => `${key} ${values[index]}`).join(", ")}`)
}

const keyFault = (key: string, schema: JsonSchema | undefined): readonly string[] => {
  if (schema === undefined) return [`parameter ${key} is not declared`]
  if (valuesOf(schema) === undefined) return [`parameter ${key} has no finite set of values`]
  return schema.default === undefined ? [`parameter ${key} has no default`] : []
}

const timesFault = (name: string | undefined, properties: ReadonlyMap<string, JsonSchema>): readonly string[] => {
  if (name === undefined) return []
  const schema = properties.get(name)
  if (schema === undefined) return [`parameter ${name} is not declared`]
  return Number.isFinite(Number(schema.default)) ? [] : [`parameter ${name} has no number as its default`]
}

const valuesOf = (schema: JsonSchema): readonly string[] | undefined => {
  if (Array.isArray(schema.enum)) return schema.enum.map(String)
  if (schema.const !== undefined) return [String(schema.const)]
  if (schema.type === "boolean") return ["true", "false"]
  const { minimum, maximum } = schema
  if (schema.type !== "integer" || typeof minimum !== "number" || typeof maximum !== "number") return undefined
  if (maximum - minimum >= integersMax) return undefined
  return Array.from({ length: maximum - minimum + 1 }, (_, index) => String(minimum + index))
}

const propertiesOf = (schema: JsonSchema | undefined): ReadonlyMap<string, JsonSchema> => {
  const properties = schema?.properties
  return typeof properties === "object" && properties !== null ? new Map(Object.entries(properties)) : new Map()
}
