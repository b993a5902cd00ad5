/** Vectors as clients ask for them: a list of numbers, or base64 of 32-bit floats, little end first. */

import { unreadable } from "../../core/index.ts"

type Coding = "float" | "base64"

/** The items of an answer, each vector in the wanted coding, whatever the vendor chose. */
export const coded = (data: readonly unknown[], coding: Coding): readonly unknown[] =>
  data.map(item => {
    const { embedding, ...rest } = item as Readonly<Record<string, unknown>>
    return { ...rest, embedding: vectorIn(embedding, coding) }
  })

const vectorIn = (embedding: unknown, coding: Coding): unknown => {
  if (typeof embedding === "string") return coding === "base64" ? embedding : floatsOf(embedding)
  if (!Array.isArray(embedding)) throw unreadable()
  return coding === "base64" ? base64Of(embedding) : embedding
}

export const base64Of = (vector: readonly number[]): string => {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(value, at * 4)
  return bytes.toString("base64")
}

export const floatsOf = (base64: string): readonly number[] => {
  const bytes = Buffer.from(base64, "base64")
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, at) => bytes.readFloatLE(at * 4))
}
