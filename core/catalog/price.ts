/** What a call costs: one pure function for estimate, hold and settle, so that they cannot disagree. */

import { GatewayError } from "../errors.ts"
import type {
  Bucket,
  PriceBound,
  PriceCard,
  PriceCondition,
  Priced,
  PricedLine,
  PriceInput,
  PriceLine,
  PriceRow,
  Rate,
  Usage,
} from "../offer.ts"
import { buckets, inputBuckets, microsPerCredit } from "../offer.ts"
import { add, approximate, commonMultiple, fraction, multiply, roundHalfUp, roundUp } from "./exact.ts"

/** Where a bucket without a line of its own is priced; any other bucket costs nothing and is reported. */
const fallbacks: ReadonlyMap<Bucket, Bucket> = new Map([
  ["cache_read", "input"],
  ["cache_write_5m", "input"],
  ["cache_write_1h", "input"],
  ["audio_input", "input"],
  ["audio_output", "output"],
])

/** One line of a sheet: `lookup` finds what it costs and how often, for one call. */
interface Term {
  readonly item: string
  readonly basis: string
  /** What the line charges for; `undefined`: a table row or the vendor's own cost. */
  readonly bucket?: Bucket
  readonly rate?: Rate
  /** The same over the sheet's own `per`, where that is exact. */
  readonly units?: number
  /** Charged only when the vendor does not tell its cost: `requests` beside `vendor_cost`. */
  readonly instead?: true
  readonly line: PriceLine
}

/** A card with one of its `when` rows applied (or none), ready to be summed. */
interface Sheet {
  readonly condition?: PriceCondition
  readonly times?: Rate
  readonly terms: readonly Term[]
  /** What the `units` of all terms are parts of; `undefined`: the sheet is summed by fractions. */
  readonly per?: number
  /** Buckets that raise `unpriced` when they have a quantity. */
  readonly unpriced: readonly Bucket[]
  /** The vendor's own cost is charged too. */
  readonly byCost: boolean
}

/**
 * The price of a call.
 *
 * @param card  the model's price card; rates in micros (1 credit = 1,000,000 micros)
 * @param input quantities used (or estimated) and the request's parameters, defaults filled in
 * @returns whole micros, `lines` that sum to them, and buckets that had a quantity and no price. Token lines are summed
 *   exactly and rounded up to one micro; `round: credit` rounds the sum to the nearest credit, halves up
 * @throws GatewayError `price_missing` (500): the card has no row for these parameters
 * @see specification 4.12 (estimate) and 8 (billing rules)
 */
export const price = (card: PriceCard, input: PriceInput): Priced => {
  const sheets = sheetsOf(card)
  if (input.dearest !== true || sheets.length === 1) return total(card, matching(sheets, input), input)
  return sheets
    .map(sheet => total(card, sheet, input))
    .reduce((most, next) => (next.micros > most.micros ? next : most))
}

const total = (card: PriceCard, sheet: Sheet, input: PriceInput): Priced =>
  plainTotal(card, sheet, input) ?? exactTotal(card, sheet, input)

/** The sum in plain numbers, because a call is priced three times; `undefined` where a number would lose digits. */
const plainTotal = (card: PriceCard, sheet: Sheet, input: PriceInput): Priced | undefined => {
  const { per } = sheet
  if (per === undefined || card.round !== "micro") return undefined
  const lines: PricedLine[] = []
  let sum = 0
  let before = 0
  for (const term of sheet.terms) {
    const quantity = quantityOf(term, input)
    if (quantity === 0) continue
    sum += term.units! * quantity
    if (!Number.isSafeInteger(quantity) || !Number.isSafeInteger(sum)) return undefined
    const after = dividedUp(sum, per)
    lines.push({ item: term.item, micros: after - before, quantity, basis: term.basis })
    before = after
  }
  return priced(card, sheet, input, before, lines)
}

/** `Math.ceil(value / per)`, exact where that quotient would be rounded. */
const dividedUp = (value: number, per: number): number => {
  const rest = value % per
  return (value - rest) / per + (rest === 0 ? 0 : 1)
}

/** The sum in fractions, for every sheet and quantity. */
const exactTotal = (card: PriceCard, sheet: Sheet, input: PriceInput): Priced => {
  const lines: PricedLine[] = []
  let sum: Rate = { micros: 0n, per: 1n }
  let before = 0n
  for (const term of sheet.terms) {
    const quantity = quantityOf(term, input)
    if (quantity === 0) continue
    sum = add(sum, amount(term, quantity, sheet, input))
    // Rounding the running sum, not each line, makes the lines add up to the total.
    const after = card.round === "credit" ? roundHalfUp(sum, BigInt(microsPerCredit)) : roundUp(sum)
    lines.push({ item: term.item, micros: whole(after - before), quantity, basis: term.basis })
    before = after
  }
  return priced(card, sheet, input, whole(before), lines)
}

const priced = (
  card: PriceCard,
  sheet: Sheet,
  input: PriceInput,
  micros: number,
  lines: readonly PricedLine[],
): Priced => ({
  micros,
  bound: boundOf(card, sheet, input),
  lines,
  unpriced: unpricedOf(sheet, input),
  digest: card.digest,
})

const unpricedOf = (sheet: Sheet, { usage }: PriceInput): readonly Bucket[] => {
  let found = nothing
  for (const bucket of sheet.unpriced) if (countOf(usage, bucket) > 0) found = [...found, bucket]
  return found
}
const nothing: readonly Bucket[] = []

/** An amount that no wallet could hold is cut to the largest exact number. */
const whole = (value: bigint): number => Number(value > maxMicros ? maxMicros : value)
const maxMicros = BigInt(Number.MAX_SAFE_INTEGER)

const amount = (term: Term, quantity: number, sheet: Sheet, input: PriceInput): Rate => {
  const times = fraction(quantity) ?? { micros: 0n, per: 1n }
  if (term.rate !== undefined) return { micros: term.rate.micros * times.micros, per: term.rate.per * times.per }
  const looked = rowOf(term.line, input)
  return multiply(sheet.times === undefined ? looked : multiply(looked, sheet.times), times)
}

const quantityOf = (term: Term, input: PriceInput): number => {
  const { line } = term
  if (term.instead === true && input.usage.cost_dollars !== undefined) return 0
  if (term.bucket !== undefined) return countOf(input.usage, term.bucket)
  if (line.kind === "vendor_cost") return positive(input.usage.cost_dollars)
  if (line.kind === "table" && line.times !== undefined) return multiplier(line.times, input)
  return 1
}

/** A call is one request unless its usage says otherwise: a flat price needs no reader. */
const countOf = (usage: Usage, bucket: Bucket): number =>
  bucket === "requests" && usage.requests === undefined ? 1 : positive(usage[bucket])

/** A negative quantity, or one that is no number, counts as 0: nobody is paid for a call. */
const positive = (quantity: number | undefined): number =>
  quantity !== undefined && quantity > 0 && Number.isFinite(quantity) ? quantity : 0

const multiplier = (name: string, input: PriceInput): number => {
  const value = parameter(name, input)
  const number = typeof value === "string" && fraction(value) !== undefined ? Number(value) : value
  if (typeof number === "number" && Number.isFinite(number) && number >= 0) return number
  throw new GatewayError("price_missing", `No price is configured for ${name} ${shown(value)}`)
}

const rowOf = (line: PriceLine, input: PriceInput): Rate => {
  if (line.kind !== "table") return line.rate
  const values = line.keys.map(key => parameter(key, input))
  const row = line.rows.get(values.map(String).join("\n"))
  if (row !== undefined) return row
  const asked = line.keys.map((key, index) => `${key} ${shown(values[index])}`).join(", ")
  throw new GatewayError("price_missing", `No price is configured for ${asked}`)
}

const parameter = (name: string, input: PriceInput): unknown =>
  input.parameters !== undefined && Object.hasOwn(input.parameters, name) ? input.parameters[name] : undefined

const shown = (value: unknown): string => (value === undefined ? "(absent)" : String(value).slice(0, 40))

const boundOf = (card: PriceCard, sheet: Sheet, input: PriceInput): PriceBound => {
  if (sheet.byCost && input.usage.cost_dollars === undefined) return "approximate" // whatever the row: nobody knows yet
  return input.dearest === true && card.when.length > 0 ? "maximum" : "exact"
}

// ---- which row of `when` ----

const matching = (sheets: readonly Sheet[], input: PriceInput): Sheet => {
  if (sheets.length === 1) return sheets[0]!
  // By `prompt` vendors mean all of its tokens, audio included.
  const prompt = inputBuckets.reduce((sum, bucket) => sum + positive(input.usage[bucket]), 0)
  return sheets.find(sheet => sheet.condition !== undefined && holds(sheet.condition, prompt, input)) ?? sheets[0]!
}

const holds = (condition: PriceCondition, prompt: number, input: PriceInput): boolean =>
  (condition.service_tier === undefined || condition.service_tier === input.serviceTier) &&
  (condition.prompt === undefined || compare[condition.prompt.operator](prompt, condition.prompt.tokens))

const compare = {
  ">": (a: number, b: number) => a > b,
  ">=": (a: number, b: number) => a >= b,
  "<": (a: number, b: number) => a < b,
  "<=": (a: number, b: number) => a <= b,
} as const

// ---- sheets, made once for each card ----

const made = new WeakMap<PriceCard, readonly Sheet[]>()

/** The plain sheet first, then one for each row of `when`. */
const sheetsOf = (card: PriceCard): readonly Sheet[] => {
  const known = made.get(card)
  if (known !== undefined) return known
  const sheets = [sheetOf(card.lines), ...card.when.map(row => sheetOf(applied(card.lines, row), row))]
  made.set(card, sheets)
  return sheets
}

/** The lines of a card with those that the row names put in their places. */
const applied = (lines: readonly PriceLine[], row: PriceRow): readonly PriceLine[] => [
  ...lines.map(line => row.lines.find(other => other.item === line.item) ?? line),
  ...row.lines.filter(other => !lines.some(line => line.item === other.item)),
]

const sheetOf = (lines: readonly PriceLine[], row?: PriceRow): Sheet => {
  const times = row?.times
  const byCost = lines.some(line => line.kind === "vendor_cost")
  const own = lines
    .map(line => termOf(line, line.item, times))
    .map(term => (byCost && term.bucket === "requests" ? { ...term, instead: true as const } : term))
  const borrowed = [...fallbacks].flatMap(([bucket, from]) => {
    const line = lines.find(one => one.item === from)
    return line === undefined || lines.some(one => one.item === bucket) ? [] : [termOf(line, bucket, times)]
  })
  const terms = [...own, ...borrowed]
  return {
    ...inUnits(terms),
    byCost,
    unpriced: coversAll(lines) ? [] : consumed.filter(bucket => !terms.some(term => term.bucket === bucket)),
    ...(row === undefined ? {} : { condition: row.if }),
    ...(times === undefined ? {} : { times }),
  }
}

/** All rates over one denominator, as plain numbers where those are exact: the sum then needs no fractions. */
const inUnits = (terms: readonly Term[]): Pick<Sheet, "terms" | "per"> => {
  let per = 1n
  for (const { rate } of terms) per = rate === undefined ? 0n : commonMultiple(per, rate.per)
  if (per === 0n || per > maxMicros) return { terms }
  const unitsOf = (rate: Rate): bigint => rate.micros * (per / rate.per)
  if (terms.some(({ rate }) => unitsOf(rate!) > maxMicros)) return { terms }
  return { per: Number(per), terms: terms.map(term => ({ ...term, units: Number(unitsOf(term.rate!)) })) }
}

/** A request is the call itself: without a price of its own it consumes nothing. */
const consumed: readonly Bucket[] = buckets.filter(bucket => bucket !== "requests")

/** A flat price, a price per piece, a table, or the vendor's own cost covers whatever the call used. */
const coversAll = (lines: readonly PriceLine[]): boolean =>
  lines.some(line => line.kind !== "rate") || lines.every(line => pieces.has(line.item))
const pieces: ReadonlySet<string> = new Set(["requests", "documents", "characters"] satisfies readonly Bucket[])

const termOf = (line: PriceLine, item: string, times: Rate | undefined): Term => {
  const basis = times === undefined ? line.text : `${line.text}, times ${approximate(times)}`
  if (line.kind === "table") return { item, basis, line, ...(line.bucket === undefined ? {} : { bucket: line.bucket }) }
  if (line.kind === "vendor_cost") return { item, basis, line }
  const bucket = item === line.item ? line.bucket : (item as Bucket)
  return { item, basis, bucket, line, rate: times === undefined ? line.rate : multiply(line.rate, times) }
}
