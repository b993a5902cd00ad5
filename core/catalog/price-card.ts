/** The YAML form of a price card, read into rates. */

import { createHash } from "node:crypto"
import type { Bucket, PriceCard, PriceCondition, PriceLine, PriceRow, Rate, Unit } from "../offer.ts"
import { buckets, microsPerCredit } from "../offer.ts"
import { fraction, multiply, rate } from "./exact.ts"
import { type Field, required } from "./field.ts"

/** In what a bucket is counted; seconds may be priced by the minute. */
const unitOf: Readonly<Record<Bucket, Unit>> = {
  input: "tokens",
  cache_read: "tokens",
  cache_write_5m: "tokens",
  cache_write_1h: "tokens",
  output: "tokens",
  audio_input: "tokens",
  audio_output: "tokens",
  image_output: "tokens",
  images: "images",
  seconds: "seconds",
  characters: "characters",
  documents: "documents",
  web_search: "requests",
  requests: "requests",
}

const rateText = /^(\d+(?:\.\d+)?) per (?:(1K|1M) )?([a-z]+?)s?$/
const thousands: Readonly<Record<string, bigint>> = { "1K": 1000n, "1M": 1_000_000n }
const conditionText = /^(>=|<=|>|<) ?(\d{1,12})$/
const perText = /^(request|image|[a-z]+ of ([A-Za-z][A-Za-z0-9_]*))$/
const itemPattern = /^[a-z][a-z0-9_]*$/
/** A price beyond this is a slip of the keyboard, and sums of it would leave the exact numbers. */
const creditsMax = 1_000_000_000n

/** Reads a card; what is wrong with it is reported on the fields. */
export const readCard = (field: Field): PriceCard | undefined => {
  const fields = field.fields()
  const lines = readLines(fields, ["round", "when"])
  const round = fields.get("round")?.choice(["micro", "credit"]) ?? "micro"
  const when =
    fields
      .get("when")
      ?.list()
      .flatMap(row => readRow(row) ?? []) ?? []
  if (lines.length === 0) return field.problem("expected at least one price line, such as input: 3000 per 1M tokens")
  return { lines, when, round, digest: digest(field.plain()) }
}

/** Twelve hex digits of the SHA-256 of plain data, whatever the order of its keys. */
export const digest = (plain: unknown): string =>
  createHash("sha256").update(JSON.stringify(plain, sorted)).digest("hex").slice(0, 12)

const sorted = (_key: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value

const readLines = (fields: ReadonlyMap<string, Field>, others: readonly string[]): readonly PriceLine[] =>
  [...fields].flatMap(([item, field]) => (others.includes(item) ? [] : (readLine(item, field, others) ?? [])))

/** @param others the keys that may stand beside the lines */
const readLine = (item: string, field: Field, others: readonly string[]): PriceLine | undefined => {
  if (item === "vendor_cost") return readVendorCost(field)
  if (field.shape.kind === "map")
    return itemPattern.test(item) ? readTable(item, field) : field.problem("expected a plain name")
  const bucket = buckets.find(one => one === item)
  if (bucket !== undefined) return readRate(bucket, field)
  return field.problem(`expected a table, vendor_cost or one of: ${[...buckets, ...others].join(", ")}`)
}

const readVendorCost = (field: Field): PriceLine | undefined => {
  const text = field.string("credits per dollar", /^\d+(\.\d+)? per dollar$/)
  const value = text === undefined ? undefined : toRate(field, text.split(" ")[0]!)
  return value === undefined
    ? undefined
    : { kind: "vendor_cost", item: "vendor_cost", rate: value, text: `${text!.replace(" per", " credits per")}` }
}

const readRate = (bucket: Bucket, field: Field): PriceLine | undefined => {
  const unit = unitOf[bucket]
  const what = `credits per [1K|1M] ${unit === "seconds" ? "seconds or minutes" : unit}`
  const text = field.string(what, rateText)
  const parts = text === undefined ? null : rateText.exec(text)
  if (parts === null) return undefined
  const minutes = unit === "seconds" && parts[3] === "minute"
  if (`${parts[3]}s` !== unit && !minutes) return field.expected(what)
  const credits = toRate(field, parts[1]!)
  if (credits === undefined) return undefined
  const per = (thousands[parts[2] ?? ""] ?? 1n) * (minutes ? 60n : 1n)
  const exact = rate(credits.micros, credits.per * per)
  return { kind: "rate", item: bucket, bucket, rate: exact, text: text!.replace(" per", " credits per") }
}

const readTable = (item: string, field: Field): PriceLine | undefined => {
  const fields = field.fields(["per", "table", "rows"])
  const per = required(field, fields, "per")?.string("request, image, or <unit> of <parameter>", perText)
  const keys = fields.get("table")?.strings("the name of a parameter") ?? []
  const rows = new Map<string, Rate>()
  const cells = required(field, fields, "rows")
  if (cells !== undefined) readCells(cells, keys, [], rows)
  if (per === undefined || rows.size === 0) return undefined
  const times = perText.exec(per)?.[2]
  const text = `credits per ${per}${keys.length === 0 ? "" : ` by ${keys.join(" and ")}`}`
  const factor = times === undefined ? (per === "image" ? { bucket: "images" as const } : {}) : { times }
  return { kind: "table", item, ...factor, keys, rows, text }
}

/** One level of nesting for each key of the table. */
const readCells = (field: Field, keys: readonly string[], values: readonly string[], rows: Map<string, Rate>): void => {
  if (values.length === keys.length) {
    const value = field.word("credits")
    const credits = value === undefined ? undefined : toRate(field, value)
    if (credits !== undefined) rows.set(values.join("\n"), credits)
    return
  }
  if (field.shape.kind !== "map") field.expected(`credits for each ${keys[values.length]}`)
  else for (const [name, cell] of field.fields()) readCells(cell, keys, [...values, name], rows)
}

/** Credits as written, in micros. */
const toRate = (field: Field, credits: string): Rate | undefined => {
  const value = fraction(credits)
  if (value === undefined || value.micros > creditsMax * value.per)
    return field.expected(`credits from 0 to ${creditsMax}`)
  return multiply(value, { micros: BigInt(microsPerCredit), per: 1n })
}

const readRow = (field: Field): PriceRow | undefined => {
  const fields = field.fields()
  const condition = required(field, fields, "if")
  const times = fields.get("times")
  const factor = times === undefined ? undefined : readFactor(times)
  const lines = readLines(fields, ["if", "times"])
  if (condition === undefined) return undefined
  if (factor === undefined && lines.length === 0) return field.problem("expected times or price lines beside if")
  return { if: readCondition(condition), lines, ...(factor === undefined ? {} : { times: factor }) }
}

const readFactor = (field: Field): Rate | undefined => {
  const value = field.number({ least: 0, most: 1000 })
  return value === undefined ? undefined : fraction(value)
}

const readCondition = (field: Field): PriceCondition => {
  const fields = field.fields(["prompt", "service_tier"])
  if (field.shape.kind === "map" && fields.size === 0) field.problem("expected prompt or service_tier")
  const tier = fields.get("service_tier")?.string("the name of a tier")
  const prompt = fields.get("prompt")
  const parts = conditionText.exec(prompt?.string('tokens, such as "> 200000"', conditionText) ?? "")
  return {
    ...(tier === undefined ? {} : { service_tier: tier }),
    ...(parts === null ? {} : { prompt: { operator: parts[1] as ">" | ">=" | "<" | "<=", tokens: Number(parts[2]) } }),
  }
}
