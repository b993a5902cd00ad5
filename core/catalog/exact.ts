/** Exact decimals and fractions: money never passes through a float. */

import type { Rate } from "../offer.ts"

const decimal = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** An exponent beyond this is nobody's quantity; it only makes huge numbers. */
const maxExponent = 400

const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? a : gcd(b, a % b))

/** The least; 0 with 0. */
export const commonMultiple = (a: bigint, b: bigint): bigint => (a === 0n || b === 0n ? 0n : (a / gcd(a, b)) * b)

/** `micros / per`, in lowest terms. */
export const rate = (micros: bigint, per: bigint): Rate => {
  const divisor = gcd(micros, per)
  return divisor > 1n ? { micros: micros / divisor, per: per / divisor } : { micros, per }
}

/**
 * A decimal as it is written (`0.25` is 25/100), as a fraction; `undefined` when the text is no decimal >= 0.
 * A number is read by its shortest decimal form: 0.1 is one tenth.
 */
export const fraction = (value: string | number): Rate | undefined => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return { micros: BigInt(value), per: 1n }
  const parts = decimal.exec(String(value))
  const exponent = Number(parts?.[3] ?? 0)
  if (parts === null || Math.abs(exponent) > maxExponent) return undefined
  const digits = BigInt(`${parts[1]}${parts[2] ?? ""}`)
  const scale = exponent - (parts[2]?.length ?? 0)
  return scale >= 0 ? { micros: digits * 10n ** BigInt(scale), per: 1n } : rate(digits, 10n ** BigInt(-scale))
}

/** As a number, for people and clients: never for sums. */
export const approximate = ({ micros, per }: Rate): number => Number(micros) / Number(per)

export const multiply = (a: Rate, b: Rate): Rate => rate(a.micros * b.micros, a.per * b.per)

/** The sum, not reduced: most denominators are equal. */
export const add = (a: Rate, b: Rate): Rate =>
  a.per === b.per
    ? { micros: a.micros + b.micros, per: a.per }
    : { micros: a.micros * b.per + b.micros * a.per, per: a.per * b.per }

export const roundUp = (value: Rate): bigint => (value.micros + value.per - 1n) / value.per

/** To the nearest multiple of `step`, halves up. */
export const roundHalfUp = (value: Rate, step: bigint): bigint =>
  ((2n * value.micros + step * value.per) / (2n * step * value.per)) * step
