/** What a tool returned, as the object that this wire demands. */

import { argumentsIn, isObject, type JsonObject } from "../../../../core/index.ts"
import { parse } from "../../common/json.ts"

/**
 * Objects stay as they are, other values are wrapped. What the vendor would read as more than data, or what would not
 * come through JSON unchanged, stays the text that it was.
 */
export const resultOf = (text: string): JsonObject => {
  const value = parse(Buffer.from(text))
  if (value === undefined) return { result: text }
  if (!isFaithful(value, 0)) return { output: text }
  return isObject(value) ? value : { result: value }
}

/** Deeper than this neither side reads willingly. */
const depthMax = 32

/** Newer models resolve `$ref` inside of results and refuse what they cannot; large integers lose their last digits. */
const isFaithful = (value: unknown, depth: number): boolean => {
  if (typeof value === "number") return Number.isSafeInteger(value) || !Number.isInteger(value)
  if (typeof value !== "object" || value === null) return true
  if (depth >= depthMax || Object.hasOwn(value, "$ref")) return false
  return Object.values(value).every(inner => isFaithful(inner, depth + 1))
}

/** What is nested too deep stays the text that it was, like broken JSON. */
export const argumentsOf = (written: unknown): JsonObject => {
  const value = argumentsIn(written)
  return isObject(written) || isShallow(value, 0) ? value : { _raw: written }
}

const isShallow = (value: unknown, depth: number): boolean =>
  typeof value !== "object" ||
  value === null ||
  (depth < depthMax && Object.values(value).every(inner => isShallow(inner, depth + 1)))
