/** The strings of a JSON text, found and checked on its bytes. */

import { GatewayError } from "../errors.ts"

const quote = 0x22
const backslash = 0x5c

/** Broken JSON as the 422 of the specification; `offset` in bytes. */
export const broken = (offset: number, problem: string): GatewayError => {
  const msg = `JSON decode error: ${problem}`
  const detail = [{ type: "json_invalid", loc: ["body", offset], msg, input: {}, ctx: { error: problem } }]
  return new GatewayError("validation_failed", `${msg} at byte ${offset}`, { detail })
}

/** 1 for the bytes that end a plain run: quote, backslash and the controls, which RFC 8259 section 7 forbids unescaped. */
const stops = new Uint8Array(256)
stops.fill(1, 0, 0x20)
stops[quote] = 1
stops[backslash] = 1

const isHex = new Uint8Array(256)
for (const digit of Buffer.from("0123456789abcdefABCDEF")) isHex[digit] = 1

const shortEscapes = new Uint8Array(256)
for (const letter of Buffer.from('"\\/bfnrt')) shortEscapes[letter] = 1

/** After so many plain bytes a string is long, and a native search pays for its call. */
const nearBytes = 192

const controls = 0x20202020
const highBits = 0x80808080 | 0

export class JsonStrings {
  readonly #bytes: Buffer
  /** Whether an escape was passed since the caller last cleared this. */
  escaped = false
  // The next of each after the last search: remembered, so that no byte is searched twice.
  #quoteAt = -1
  #backslashAt = -1
  #words: Int32Array | undefined

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** The offset of the closing quote of the string whose text starts at `at`. */
  end(at: number): number {
    const bytes = this.#bytes
    let near = at + nearBytes
    for (;;) {
      const stop = Math.min(near, bytes.length)
      while (at < stop && stops[bytes[at]!] === 0) at += 1
      if (at === near) at = this.#far(at)
      if (at >= bytes.length) throw broken(bytes.length, "Unterminated string")
      const byte = bytes[at]!
      if (byte === quote) return at
      if (byte !== backslash) throw broken(at, "Invalid control character")
      at = this.#afterEscape(at)
      near = at + nearBytes
    }
  }

  #afterEscape(at: number): number {
    const bytes = this.#bytes
    this.escaped = true
    if (at + 1 >= bytes.length) throw broken(bytes.length, "Unterminated string")
    const letter = bytes[at + 1]!
    if (shortEscapes[letter] === 1) return at + 2
    if (letter !== 0x75) throw broken(at, "Invalid escape")
    for (let digit = at + 2; digit < at + 6; digit += 1) {
      if (digit >= bytes.length || isHex[bytes[digit]!] === 0) throw broken(at, "Invalid unicode escape")
    }
    return at + 6
  }

  /** The next quote, backslash or control at or after `at`, or the length: 18 MB of base64 take a few milliseconds. */
  #far(at: number): number {
    if (this.#quoteAt < at) this.#quoteAt = this.#find(quote, at)
    if (this.#backslashAt < at) this.#backslashAt = this.#find(backslash, at)
    return this.#control(at, Math.min(this.#quoteAt, this.#backslashAt))
  }

  #find(byte: number, from: number): number {
    const at = this.#bytes.indexOf(byte, from)
    return at < 0 ? this.#bytes.length : at
  }

  /** The first control in `[from, to)`, or `to`; four bytes at a time where they are many. */
  #control(from: number, to: number): number {
    const bytes = this.#bytes
    const shift = -bytes.byteOffset & 3 // the buffer's first byte on a boundary of four
    let at = from
    if (to - from > 64) {
      this.#words ??= new Int32Array(bytes.buffer, bytes.byteOffset + shift, (bytes.length - shift) >> 2)
      const aligned = at + ((shift - at) & 3)
      if (!this.#plain(at, aligned)) return this.#firstControl(at, to)
      at = shift + 4 * plainWords(this.#words, (aligned - shift) >> 2, (to - shift) >> 2)
    }
    return this.#firstControl(at, to)
  }

  #plain(from: number, to: number): boolean {
    return this.#firstControl(from, to) === to
  }

  #firstControl(from: number, to: number): number {
    const bytes = this.#bytes
    while (from < to && bytes[from]! >= 0x20) from += 1
    return from
  }
}

/** The first word from `at` that may hold a byte below 0x20, to the nearest four; or where the search stopped before `end`. */
const plainWords = (words: Int32Array, at: number, end: number): number => {
  // A byte below 0x20 borrows in the subtraction: its high bit is then set in the difference but not in the word.
  for (; at + 4 <= end; at += 4) {
    const first = words[at]!
    const second = words[at + 1]!
    const third = words[at + 2]!
    const fourth = words[at + 3]!
    const low =
      ((first - controls) & ~first) |
      ((second - controls) & ~second) |
      ((third - controls) & ~third) |
      ((fourth - controls) & ~fourth)
    if ((low & highBits) !== 0) return at
  }
  return at
}
