/** Reading requests that nobody has checked yet. */

import { isObject, type JsonObject, list } from "../../core/index.ts"

export { isSet, list, record } from "../../core/index.ts"

export const records = (value: unknown): readonly JsonObject[] => list(value).filter(isObject)

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** A string, or the strings of a list. */
export const texts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter(one => typeof one === "string")

/** The text of a content: a string, or the `text` of its parts. */
export const textOf = (content: unknown): string =>
  text(content) ??
  records(content)
    .flatMap(part => text(part.text) ?? [])
    .join("\n")
