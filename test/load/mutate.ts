/** Bytes that are nearly right. */

import { between } from "./random.ts"

type Random = () => number

const any = <T>(all: readonly T[], random: Random): T => all[between(0, all.length - 1, random)] as T

const spliced = (bytes: Buffer, from: number, to: number, middle: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(to)])

const longestCut = 64

const mutations: readonly ((bytes: Buffer, words: readonly string[], random: Random) => Buffer)[] = [
  // a bit, a byte, a word
  (bytes, _, random) => {
    const copy = Buffer.from(bytes)
    const at = between(0, copy.length - 1, random)
    copy[at] = (copy[at] as number) ^ (1 << between(0, 7, random))
    return copy
  },
  (bytes, _, random) => {
    const at = between(0, bytes.length - 1, random)
    return spliced(bytes, at, at + 1, Buffer.from([between(0, 255, random)]))
  },
  (bytes, words, random) => {
    const at = between(0, bytes.length, random)
    return spliced(bytes, at, at, Buffer.from(any(words, random), "latin1"))
  },
  // less, twice, elsewhere
  (bytes, _, random) => {
    const at = between(0, bytes.length, random)
    return spliced(bytes, at, at + between(1, longestCut, random), Buffer.alloc(0))
  },
  (bytes, _, random) => {
    const at = between(0, bytes.length, random)
    return spliced(bytes, at, at, bytes.subarray(at, at + between(1, longestCut, random)))
  },
  (bytes, _, random) => {
    const from = between(0, bytes.length, random)
    const to = between(0, bytes.length, random)
    return spliced(bytes, to, to, bytes.subarray(from, from + between(1, longestCut, random)))
  },
  // lines: gone, twice
  (bytes, _, random) => {
    const lines = bytes.toString("latin1").split("\n")
    lines.splice(between(0, lines.length - 1, random), 1)
    return Buffer.from(lines.join("\n"), "latin1")
  },
  (bytes, _, random) => {
    const lines = bytes.toString("latin1").split("\n")
    const at = between(0, lines.length - 1, random)
    lines.splice(between(0, lines.length, random), 0, lines[at] as string)
    return Buffer.from(lines.join("\n"), "latin1")
  },
  (bytes, _, random) => bytes.subarray(0, between(0, bytes.length, random)),
]

/** One to four changes, one after another. */
export const mutated = (bytes: Buffer, words: readonly string[], random: Random): Buffer => {
  let changed = bytes
  for (let left = between(1, 4, random); left > 0 && changed.length > 0; left -= 1)
    changed = any(mutations, random)(changed, words, random)
  return changed
}

/** In pieces of odd sizes, as networks deliver them. */
export const cutAnyhow = (bytes: Buffer, random: Random): readonly Buffer[] => {
  const most = any([1, 7, 64, 1_000, bytes.length], random)
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = between(1, Math.max(1, most), random)
    pieces.push(bytes.subarray(at, at + size))
    at += size
    if (pieces.length > 2_000) {
      pieces.push(bytes.subarray(at))
      break
    }
  }
  return pieces
}
