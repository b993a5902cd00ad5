/** Credits as JSON and YAML write them, micros as everything else counts them: 1 credit = 1,000,000 micros. */

import { rawJson } from "../kit/exact-json.ts"
import { microsPerCredit } from "../offer.ts"
import { fraction } from "./exact.ts"

/** Credits as a number: the nearest double, which prints as the exact decimal below 2^32 credits. */
export const credits = (micros: number): number => micros / microsPerCredit

const microDigits = String(microsPerCredit).length - 1

/** Micros as exact decimal credits: `-1500000` is `-1.5`. */
export const creditsText = (micros: number): string => {
  const digits = BigInt(Math.abs(micros))
  const rest = String(digits % BigInt(microsPerCredit))
    .padStart(microDigits, "0")
    .replace(/0+$/, "")
  return `${micros < 0 ? "-" : ""}${digits / BigInt(microsPerCredit)}${rest === "" ? "" : `.${rest}`}`
}

/**
 * Credits for `JSON.stringify`, which writes them as an exact number: where a double would print other digits, the value
 * is raw JSON, and no number in this process.
 */
export const creditsJson = (micros: number): unknown => {
  const text = creditsText(micros)
  return String(credits(micros)) === text ? credits(micros) : rawJson(text)
}

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
    throw new RangeError(`${credits} is not an amount of credits: expected a number from 0 with at most six decimals`)
  }
  return Number(whole)
}
