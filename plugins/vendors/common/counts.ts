/** Counts as vendors report them, made safe to be billed. */

import type { Usage } from "../../../core/index.ts"

/** No answer has more of anything; a larger number is a fault of the vendor, not a bill. */
const countMax = 1_000_000_000

/** What was odd in one answer, each kind once. */
export class Surprises {
  #kinds: readonly string[] = none

  note(kind: string): void {
    if (!this.#kinds.includes(kind)) this.#kinds = [...this.#kinds, kind]
  }

  get all(): readonly string[] {
    return this.#kinds
  }
}

const none: readonly string[] = []

/** A whole number from 0 to 1,000,000,000; anything else but null is refused and noted as `bad_count`. */
export const count = (value: unknown, surprises: Surprises): number | undefined => {
  if (value === undefined || value === null) return undefined
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= countMax) return value as number
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
export const compact = (usage: Usage): Usage => {
  const left: Record<string, number> = {}
  for (const bucket in usage) {
    const quantity = usage[bucket as keyof Usage] as number
    if (quantity !== 0) left[bucket] = quantity
  }
  return left
}

export const isEmpty = (usage: Usage): boolean => {
  for (const _ in usage) return false
  return true
}

/** Adds the quantities of `more`. */
export const plus = (usage: Usage, more: Usage): Usage => {
  const sum: Record<string, number> = { ...usage }
  for (const bucket in more) sum[bucket] = (sum[bucket] ?? 0) + (more[bucket as keyof Usage] as number)
  return sum
}
