/** Strings that are files in disguise: data URLs and base64, told by their first bytes. */

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
  if (startsWith(bytes, start, dataUrl)) return startsWith(bytes, start, imageUrl) ? "image" : "file"
  for (let at = start; at < start + blobLeastBytes; at += 1) if (isBase64[bytes[at]!] === 0) return undefined
  return imageStarts.some(prefix => startsWith(bytes, start, prefix)) ? "image" : "file"
}

const startsWith = (bytes: Buffer, at: number, prefix: Buffer): boolean => {
  for (let n = 0; n < prefix.length; n += 1) if (bytes[at + n] !== prefix[n]) return false
  return true
}
