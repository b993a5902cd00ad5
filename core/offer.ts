/** The contract of what is offered: vendors, models, targets, usage and price cards, as plain data. */

/** A JSON Schema, or any object of one. */
export type JsonSchema = Readonly<Record<string, unknown>>

export const modelTypes = [
  "llm",
  "audio",
  "image",
  "video",
  "embedding",
  "rerank",
  "guard",
  "decision",
  "search",
] as const
export type ModelType = (typeof modelTypes)[number]

/** What a call consumed, in disjoint buckets. */
export const buckets = [
  "input",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "output",
  "audio_input",
  "audio_output",
  "image_output",
  "images",
  "seconds",
  "characters",
  "documents",
  "web_search",
  "requests",
] as const
export type Bucket = (typeof buckets)[number]

/** Tokens that a model reads, and those that it writes. */
export const inputBuckets = ["input", "cache_read", "cache_write_5m", "cache_write_1h", "audio_input"] as const
export const outputBuckets = ["output", "audio_output", "image_output"] as const

/**
 * Disjoint quantities, absent = 0; all from 0 to 2^53, anything else is left out. `reasoning` is counted apart for
 * reports and is already inside `output`; `cost_dollars` is what the vendor says the call cost it (`vendor_cost` price lines).
 */
export type Usage = { readonly [B in Bucket]?: number } & {
  readonly reasoning?: number
  readonly cost_dollars?: number
}

export interface Timeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
  readonly totalStreamMs: number
}

/** A credential towards a vendor. `name` is public (metrics, logs); the value prints as `[secret]`. */
export interface Secret {
  readonly name: string
  reveal(): string
}

export interface Vendor {
  readonly name: string
  readonly adapter: string
  /** Scheme, host and port, and a path prefix if the vendor has one; no trailing slash. */
  readonly origin: string
  readonly secrets: readonly Secret[]
  readonly timeouts: Timeouts
  readonly onClientAbort: "drain" | "cancel"
  /** Ids of things stored in the vendor's account may be used by every member. */
  readonly sharedIds: boolean
  /** Options of the adapter itself, checked by its schema. */
  readonly options: Readonly<Record<string, unknown>>
}

export interface Target {
  readonly vendor: string
  /** The vendor's own name of the model. */
  readonly model: string
  readonly weight?: number
}

/** What a model refuses or renames; checked before the call where the answer is known. */
export interface Rules {
  readonly temperature?: readonly number[]
  readonly refuse?: readonly string[]
  readonly max_tokens_as?: string
  readonly efforts?: readonly string[]
  readonly effort_budgets?: Readonly<Record<string, number>>
  readonly effort_with_tools?: string
  /** The efforts beside which sampling (temperature, top_p) is taken; `default`: none was asked for. Absent: all. */
  readonly sampling_efforts?: readonly string[]
  /** The vendor wants the reasoning of an assistant turn back, together with its tool calls. */
  readonly reasoning_back?: boolean
  readonly responses_only?: boolean
}

export interface Model {
  readonly name: string
  readonly id?: number
  readonly type: ModelType
  readonly family: string
  readonly targets: readonly Target[]
  readonly description?: string
  readonly contextWindow?: number
  readonly maxOutput?: number
  readonly created: number
  readonly rules: Rules
  readonly messages: boolean
  readonly offered: boolean
  readonly capabilities: readonly string[]
  /** JSON Schema of the generation parameters, with defaults; `undefined` when the model has none. */
  readonly parameters?: JsonSchema
  /** Old names that map to this model. */
  readonly aliases: readonly string[]
  /** Absent: served with 500 before any upstream call. */
  readonly price?: PriceCard
}

/** Credits stand in JSON and YAML, micros everywhere else. */
export const microsPerCredit = 1_000_000

/** A rate as an exact fraction: `micros` for every `per` units (both positive integers, micros may be 0). */
export interface Rate {
  readonly micros: bigint
  readonly per: bigint
}

export type Unit = "tokens" | "requests" | "characters" | "seconds" | "minutes" | "images" | "documents"

/** One line of a card: a rate for a bucket, a table over parameters, or the vendor's own cost. */
export type PriceLine =
  | {
      readonly kind: "rate"
      readonly item: string
      readonly bucket: Bucket
      readonly rate: Rate
      readonly text: string
    }
  | {
      readonly kind: "table"
      readonly item: string
      /** The parameter that multiplies the row, when the table is `per: second of duration` and its like. */
      readonly times?: string
      /** The bucket whose quantity multiplies the row, when the table is `per: image` and its like. */
      readonly bucket?: Bucket
      readonly keys: readonly string[]
      /** Row values by their parameter values joined with `\n`. */
      readonly rows: ReadonlyMap<string, Rate>
      readonly text: string
    }
  | { readonly kind: "vendor_cost"; readonly item: string; readonly rate: Rate; readonly text: string }

export interface PriceCondition {
  readonly prompt?: { readonly operator: ">" | ">=" | "<" | "<="; readonly tokens: number }
  readonly service_tier?: string
}

/** A row of `when`: the first whose conditions all hold wins; lines that it does not name stay. */
export interface PriceRow {
  readonly if: PriceCondition
  readonly times?: Rate
  readonly lines: readonly PriceLine[]
}

export interface PriceCard {
  readonly lines: readonly PriceLine[]
  readonly when: readonly PriceRow[]
  readonly round: "micro" | "credit"
  /** Twelve hex digits of the SHA-256 of the card as written: stands in the ledger row. */
  readonly digest: string
}

export interface PriceInput {
  /** The request's parameters, defaults filled in. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly usage: Usage
  /** The tier that the vendor reports, else the one asked for. */
  readonly serviceTier?: string
  /** Holds take the dearest row of `when` that may apply, whatever the tier and prompt. */
  readonly dearest?: boolean
}

export type PriceBound = "exact" | "minimum" | "maximum" | "approximate"

export interface PricedLine {
  readonly item: string
  readonly micros: number
  readonly quantity: number
  /** The rate in words, as the catalog writes it. */
  readonly basis: string
}

export interface Priced {
  readonly micros: number
  readonly bound: PriceBound
  readonly lines: readonly PricedLine[]
  /** Buckets with a quantity and no price: each raises `tollgate_usage_unpriced_total`. */
  readonly unpriced: readonly Bucket[]
  readonly digest: string
}

export interface LeftOut {
  /** The environment variables that are not set, by vendor. */
  readonly vendors: ReadonlyMap<string, readonly string[]>
  /** By current name: the vendors, all of them left out, and the old names. */
  readonly models: ReadonlyMap<string, { readonly vendors: readonly string[]; readonly aliases: readonly string[] }>
}

/** The read-only view of the catalog of one generation. */
export interface Catalog {
  /** Twelve hex digits; changes whenever anything in the catalog does. */
  readonly digest: string
  readonly models: ReadonlyMap<string, Model>
  readonly vendors: ReadonlyMap<string, Vendor>
  /** The model by current name or alias. */
  find(name: string): Model | undefined
  /** The model's card with the organisation's overlay applied; `undefined` when it has no price, or there is no such overlay. */
  card(model: Model, overlay: string | undefined): PriceCard | undefined
  /** The names of overlays that the catalog defines. */
  readonly overlays: readonly string[]
  /** What is written down and not offered, because optional vendors have no secret. */
  readonly left: LeftOut
}
