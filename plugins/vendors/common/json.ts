/** Reads vendors' JSON without trusting it: whatever is not there, or not of its kind, is absent. Never throws. */

import { exactJson, record } from "../../../core/index.ts"

export { isDone, type JsonObject, list, record, text } from "../../../core/index.ts"

/** The first of the three bytes that some writers put before their JSON, and that no JSON begins with. */
const byteOrderMark = 0xef

const textOf = (bytes: Buffer): string => (bytes[0] === byteOrderMark ? bytes.toString("utf8", 3) : bytes.toString())

/** `undefined` when the bytes are no JSON. */
export const parse = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(textOf(bytes))
  } catch {
    return undefined
  }
}

/** The same, with numbers that are written again as they stood inside of what stands at these keys. */
export const parseExact = (bytes: Buffer, below: readonly string[]): unknown => {
  try {
    return exactJson(textOf(bytes), below)
  } catch {
    return undefined
  }
}

/** UTF-8 bytes of a text, or of the texts in a list of content parts. */
export const textBytes = (value: unknown): number => {
  if (typeof value === "string") return Buffer.byteLength(value)
  if (!Array.isArray(value)) return 0
  let bytes = 0
  for (const part of value) {
    const { text, refusal, thinking } = record(part)
    bytes += textBytes(text) + textBytes(refusal) + textBytes(thinking)
  }
  return bytes
}
