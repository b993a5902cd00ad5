/** What a day of usage sums up, in the order in which both engines keep it. */

import type { Usage } from "../offer.ts"
import type { ChargeDetail, UsageGroup, UsageQuery, UsageRow } from "./store.ts"

export const quantityNames = ["requests", "micros", "input", "output", "cached", "seconds", "images"] as const

/** One number for each of the names. */
export type Quantities = NumberEach<typeof quantityNames>

type NumberEach<Names extends readonly string[]> = { readonly [Index in keyof Names]: number }

/** One call's part of its day. Input is what was not read from a cache, output in whatever form. */
export const quantities = (micros: number, usage: Usage): Quantities => [
  1,
  micros,
  sum(usage.input, usage.cache_write_5m, usage.cache_write_1h, usage.audio_input),
  sum(usage.output, usage.audio_output, usage.image_output),
  sum(usage.cache_read),
  sum(usage.seconds),
  sum(usage.images),
]

const sum = (...parts: readonly (number | undefined)[]): number => {
  let total = 0
  for (const part of parts) total += part ?? 0
  return total
}

/** What a refund adds to its own day: all of the call, negative. */
export const negative = (given: Quantities): Quantities => given.map(quantity => 0 - quantity) as unknown as Quantities

export const plus = (one: Quantities, other: Quantities): Quantities =>
  one.map((quantity, at) => quantity + other[at]!) as unknown as Quantities

export const usageRow = (name: string, sums: Quantities): UsageRow => {
  const [requests, micros, input, output, cached, seconds, images] = sums
  return { name, requests, micros, input, output, cached, seconds, images }
}

/** The columns of a usage day, in the order of its key. */
export const usageColumns = ["day", "key", "model", "kind", "route"] as const satisfies readonly UsageGroup[]

export type UsageKey = readonly [day: string, key: string, model: string, kind: string, route: string]

export const usageKey = (day: string, detail: ChargeDetail): UsageKey => [
  day,
  detail.key,
  detail.model,
  detail.kind,
  detail.route,
]

export const withinQuery = (key: UsageKey, query: UsageQuery): boolean =>
  key[0] >= query.from && key[0] <= query.to && (query.key === undefined || query.key === key[1])
