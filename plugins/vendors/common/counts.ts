/** Counts as vendors report them, made safe to be billed. */

import type { Usage } from "../../../core/index.ts"

/** No answer has more of anything; a larger number is a fault of the vendor, not a bill. */
const largestCount = 1_000_000_000

/** What was odd in one answer, each kind once. */
export class Surprises {
  readonly #kinds = new Set<string>()

  note(kind: string): void {
    this.#kinds.add(kind)
  }

  get all(): readonly string[] {
    return [...this.#kinds]
  }
}

/** A whole number from 0 to 1,000,000,000; anything else but null is refused and noted as `bad_count`. */
export const count = (value: unknown, surprises: Surprises): number | undefined => {
  if (value === undefined || value === null) return undefined
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= largestCount) return value as number
  surprises.note("bad_count")
  return undefined
}

/** Parts that a total contains, in order: each gets at most what is left, so that they never exceed the total. */
export const within = (total: number, parts: readonly number[], surprises: Surprises): readonly number[] => {
  let left = total
  return parts.map(part => {
    if (part > left) surprises.note("part_over_total")
    const taken = Math.min(part, left)
    left -= taken
    return taken
  })
}

/** The usage without its zeros. */
export const compact = (usage: Usage): Usage =>
  Object.fromEntries(Object.entries(usage).filter(([, quantity]) => quantity !== 0))

export const isEmpty = (usage: Usage): boolean => Object.keys(usage).length === 0

/** Adds the quantities of `more`. */
export const plus = (usage: Usage, more: Usage): Usage => {
  const sum: Record<string, number> = { ...usage }
  for (const [bucket, quantity] of Object.entries(more)) sum[bucket] = (sum[bucket] ?? 0) + quantity
  return sum
}
