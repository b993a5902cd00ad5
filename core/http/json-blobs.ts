/** Strings that are files in disguise: data URLs and base64. What only begins so is text, and is counted as text. */

import type { PartClass } from "./json-words.ts"

/** A shorter string costs as much as text as it would as a file. */
export const blobLeastBytes = 256

const dataUrl = Buffer.from("data:")
const imageUrl = Buffer.from("data:image") // then a slash, which some JSON writers escape

/** How the base64 of PNG, JPEG, GIF and WebP files begins. */
const imageStarts = ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR"].map(start => Buffer.from(start))

const isBase64 = new Uint8Array(256)
for (const letter of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")) {
  isBase64[letter] = 1
}

/** What the string value in `[start, end)` is; `undefined` = text. */
export const blobClass = (bytes: Buffer, start: number, end: number): PartClass | undefined => {
  if (end - start < blobLeastBytes) return undefined
  if (startsWith(bytes, start, dataUrl)) return dataClass(bytes, start, end)
  if (!isBase64To(bytes, start, end)) return undefined
  return imageStarts.some(prefix => startsWith(bytes, start, prefix)) ? "image" : "file"
}

const comma = 0x2c
/** A data URL says what it is within so many bytes. */
const dataHeadMax = 256

const dataClass = (bytes: Buffer, start: number, end: number): PartClass | undefined => {
  const data = bytes.subarray(start, Math.min(end, start + dataHeadMax)).indexOf(comma)
  if (data === -1 || !isBase64To(bytes, start + data + 1, end)) return undefined
  return startsWith(bytes, start, imageUrl) ? "image" : "file"
}

const space = 0x20
const backslash = 0x5c
/** Beyond its beginning, one byte of so many is looked at: files have many megabytes. */
const stride = 16

/**
 * A beginning proves nothing: no word may follow, and samples to the end are letters of base64. Lines may be broken by
 * escapes, and some writers escape the slash.
 */
const isBase64To = (bytes: Buffer, start: number, end: number): boolean => {
  const step = (at: number): number => (at < start + blobLeastBytes ? 1 : stride)
  for (let at = start; at < end; at += step(at)) {
    if (isBase64[bytes[at]!] === 0 && bytes[at] !== backslash) return false
  }
  return !bytes.subarray(start, end).includes(space)
}

const startsWith = (bytes: Buffer, at: number, prefix: Buffer): boolean => {
  for (let n = 0; n < prefix.length; n += 1) if (bytes[at + n] !== prefix[n]) return false
  return true
}
