/** Counts tokens of text in this process. The owner of gpt-tokenizer, whose tables (70 MB) are read at the first count. */

import { setImmediate as nextTurn } from "node:timers/promises"

/** The current encoding of the hub's family: others differ from it by some percent. */
const loadEncoding = async () => {
  const { countTokens, setMergeCacheSize } = await import("gpt-tokenizer/encoding/o200k_base")
  setMergeCacheSize(mergesKept)
  return (text: string): number => countTokens(text, asText)
}

/** Remembered pairs make repeated words fast; more of them would only be memory. */
const mergesKept = 10_000

/** What looks like a control token in a client's text is text. */
const asText = { disallowedSpecial: new Set<string>() }

/** A microsecond for each character of prose, eight for noise: other calls have their turn after a piece. */
const pieceMax = 1_024
/** What is longer is counted so far, and the rest taken to be like it. */
const exactMax = 256 * 1_024

let encoding: ReturnType<typeof loadEncoding> | undefined

/** Tokens of all texts together, each one counted alone; exact up to 256 K characters, then in proportion. */
export const tokensOf = async (texts: readonly string[]): Promise<number> => {
  encoding ??= loadEncoding()
  const count = await encoding
  let characters = 0
  let tokens = 0
  for (const piece of piecesOf(texts)) {
    if (characters >= exactMax) break
    tokens += count(piece)
    characters += piece.length
    await nextTurn()
  }
  const all = texts.reduce((sum, text) => sum + text.length, 0)
  return characters === 0 ? 0 : Math.ceil((tokens * all) / characters)
}

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts) {
    for (let from = 0; from < text.length; ) {
      const to = pieceEnd(text, from)
      yield text.slice(from, to)
      from = to
    }
  }
}

/** Before a space, since a token of prose begins with one; where there is none, anywhere but inside a character. */
const pieceEnd = (text: string, from: number): number => {
  const most = from + pieceMax
  if (most >= text.length) return text.length
  const space = text.lastIndexOf(" ", most)
  if (space > from) return space
  return isLowSurrogate(text.charCodeAt(most)) ? most - 1 : most
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff
