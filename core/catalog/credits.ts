/** Credits as JSON and YAML write them, micros as everything else counts them: 1 credit = 1,000,000 micros. */

import { fraction } from "./exact.ts"

export const microsPerCredit = 1_000_000

/** Credits for JSON: the nearest double, which prints as the exact decimal below 2^32 credits. */
export const credits = (micros: number): number => micros / microsPerCredit

/**
 * Whole micros of an amount in credits, by its decimal digits.
 *
 * @throws RangeError when it is negative, finer than one micro, or beyond 2^53 micros
 */
export const micros = (credits: number): number => {
  const value = fraction(credits)
  const whole = value === undefined ? -1n : (value.micros * BigInt(microsPerCredit)) / value.per
  const exact = value !== undefined && whole * value.per === value.micros * BigInt(microsPerCredit)
  if (!exact || whole > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`${credits} is no amount of credits: a number from 0 with at most six decimals is expected`)
  }
  return Number(whole)
}
