/**
 * JSON whose numbers are written again as they stood: `1234567890123456789` and `1.0` are no numbers of JavaScript, and
 * arguments of tools are the client's own data.
 */

import { isObject, type JsonObject } from "./walk.ts"

interface Source {
  /** As it stands in the text; of texts, numbers and words only. */
  readonly source?: string
}

/** What the engine has and the library of types does not name yet. */
const json = JSON as typeof JSON & {
  parse(text: string, revive: (key: string, value: unknown, context: Source) => unknown): unknown
  rawJSON(text: string): object
  isRawJSON(value: unknown): value is { readonly rawJSON: string }
}

/** A text of JSON that `JSON.stringify` writes as it stands. */
export const rawJson = (text: string): unknown => json.rawJSON(text)

/** A number that would be written differently: an object of the engine's, which `JSON.stringify` writes as it stood. */
export const isExactNumber = (value: unknown): boolean => json.isRawJSON(value)

const exact = (_key: string, value: unknown, { source }: Source): unknown =>
  typeof value === "number" && source !== undefined && String(value) !== source ? json.rawJSON(source) : value

/**
 * Arguments of a tool from the text that a model wrote. Models write broken JSON at times: it is kept as it was written,
 * as `{_raw: "..."}`.
 */
export const argumentsIn = (written: unknown): JsonObject => {
  if (isObject(written)) return written
  if (typeof written !== "string" || written.trim() === "") return {}
  try {
    const value = json.parse(written, exact)
    return isObject(value) && !isExactNumber(value) ? value : { _raw: written }
  } catch {
    return { _raw: written }
  }
}

/**
 * Parsed JSON that is exact inside of the objects and lists at these keys, and ordinary elsewhere.
 *
 * @throws SyntaxError when the text is no JSON
 */
export const exactJson = (text: string, below: readonly string[]): unknown =>
  below.some(key => text.includes(`"${key}"`)) ? ordinary(json.parse(text, exact), below) : JSON.parse(text)

const ordinary = (value: unknown, below: readonly string[]): unknown => {
  if (json.isRawJSON(value)) return Number(value.rawJSON)
  if (typeof value !== "object" || value === null) return value
  const fields = value as Record<string, unknown>
  for (const key of Object.keys(fields)) {
    const field = fields[key]
    if (typeof field !== "object" || field === null) continue
    if (isExactNumber(field) || !below.includes(key)) fields[key] = ordinary(field, below)
  }
  return value
}
