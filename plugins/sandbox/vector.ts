/** Embeddings of the sandbox: the same text, the same vector, of length 1. */

import { createHash } from "node:crypto"

/** @returns so many numbers whose squares sum to 1 */
export const vectorOf = (text: string, dimensions: number): readonly number[] => {
  const bytes = createHash("shake256", { outputLength: dimensions * 2 })
    .update(text)
    .digest()
  const raw = Array.from({ length: dimensions }, (_, at) => bytes.readInt16LE(at * 2) + 0.5)
  const length = Math.hypot(...raw)
  return raw.map(value => Math.fround(value / length))
}

/** 32-bit floats, little end first. */
export const base64Of = (vector: readonly number[]): string => {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(value, at * 4)
  return bytes.toString("base64")
}
