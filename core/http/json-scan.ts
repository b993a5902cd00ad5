/** One pass over the bytes of a JSON body: is it valid, is it bounded, what stands in it, and where. */

import { isUtf8 } from "node:buffer"
import { GatewayError } from "../errors.ts"
import type { BodyScan } from "../plugin.ts"
import { blobClass } from "./json-blobs.ts"
import { broken, JsonStrings } from "./json-strings.ts"
import { type KeyWord, type ScanOptions, type Vocabulary, vocabularyOf } from "./json-words.ts"

export type { ScanOptions } from "./json-words.ts"

/** Bytes `[start, end)`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

export interface ScannedJson extends BodyScan {
  /** Where the values of the top-level fields in `reads` stand. */
  readonly fields: ReadonlyMap<string, ByteRange>
  readonly root: "object" | "array" | "other"
}

/** Bounds of what is parsed later: millions of tiny values would hold the event loop for seconds. */
const depthMax = 64
const valuesMax = 300_000

/** Of keys, numbers and brackets, about what a conversation of seventy messages has. */
const bareBytesUsual = 1024
/** A value is a token at least, however short. */
const bareBytesLeast = 3

/**
 * Scans a whole JSON text; accepts what `JSON.parse` accepts, within the bounds, as UTF-8 only. The whole text is
 * checked as UTF-8 (a native pass of some GB a second), not only the keys that are read: a lenient vendor could take an
 * overlong `model` for the key that we did not see.
 *
 * `textBytes` leaves out blobs: string values of 256 bytes or more that are data URLs or base64, to their end, and
 * stand neither in a list nor under a key whose value is text, such as `content`. Keys and values that are no strings are
 * what a request is written in; beyond what usual ones have of them they are text too: models read them. `images` and
 * `files` are counted in two ways: by the route's part words (a key whose value is null does not count) and by blobs. A
 * part that has both a word and bytes must count once, so each class is the larger of its two counts, never their sum.
 *
 * @throws GatewayError `validation_failed` (422, `json_invalid`): not JSON; `too_complex` (400): deeper than 64 levels
 *   or more than 300,000 values; `invalid_request` (400): a top-level field in `reads` is repeated, in any spelling
 */
export const scanJson = (bytes: Buffer, options: ScanOptions): ScannedJson => {
  if (!isUtf8(bytes)) throw broken(notUtf8At(bytes), "Invalid UTF-8")
  return new Scan(bytes, vocabularyOf(options)).run()
}

const replacement = "\ufffd"

/** Of the first bytes that are no UTF-8: decoding puts a character in their place, which may also be meant. */
const notUtf8At = (bytes: Buffer): number => {
  const text = bytes.toString()
  let offset = 0
  for (let from = 0, at = text.indexOf(replacement); at !== -1; from = at, at = text.indexOf(replacement, at + 1)) {
    offset += Buffer.byteLength(text.slice(from, at))
    if (!bytes.subarray(offset, offset + 3).equals(Buffer.from(replacement))) return offset
  }
  return offset
}

const objectOpen = 0x7b
const objectClose = 0x7d
const arrayOpen = 0x5b
const arrayClose = 0x5d
const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const minus = 0x2d
const letterN = 0x6e

/** For each open container, whether the one around it is an object. Shared: a scan never yields. */
const outerIsObject = new Uint8Array(depthMax)

const nothingFound: ReadonlyMap<string, number> = new Map()

class Scan {
  readonly #bytes: Buffer
  readonly #vocabulary: Vocabulary
  readonly #strings: JsonStrings
  readonly #fields = new Map<string, ByteRange>()
  #found: Map<string, number> | undefined
  readonly #words = { image: 0, file: 0 }
  readonly #blobs = { image: 0, file: 0 }
  #textBytes = 0
  /** Of keys, and of values that are no strings. */
  #bareBytes = 0
  #values = 0
  /** The word of the key whose value comes next. */
  #word: KeyWord | undefined
  /** The top-level field whose value is being walked, and where that starts. */
  #field: KeyWord | undefined
  #fieldStart = 0

  constructor(bytes: Buffer, vocabulary: Vocabulary) {
    this.#bytes = bytes
    this.#vocabulary = vocabulary
    this.#strings = new JsonStrings(bytes)
  }

  run(): ScannedJson {
    const start = blanksEnd(this.#bytes, 0)
    const end = this.#walk(start)
    if (end < this.#bytes.length) throw broken(end, "Extra data")
    const first = this.#bytes[start]
    return {
      fields: this.#fields,
      root: first === objectOpen ? "object" : first === arrayOpen ? "array" : "other",
      textBytes: this.#textBytes + Math.max(0, this.#bareBytes - bareBytesUsual),
      images: Math.max(this.#words.image, this.#blobs.image),
      files: Math.max(this.#words.file, this.#blobs.file),
      found: this.#found ?? nothingFound,
      values: this.#values,
    }
  }

  /** Walks the value at `at` and all inside it, without recursion; returns the offset behind the blanks after it. */
  #walk(at: number): number {
    const bytes = this.#bytes
    let depth = 0
    let inObject = false
    for (;;) {
      const byte = bytes[at]
      const word = this.#begin(at, byte, depth)
      if (byte === objectOpen || byte === arrayOpen) {
        if (depth === depthMax) throw tooComplex(`is nested deeper than ${depthMax} levels`)
        this.#bareBytes += bareBytesLeast
        outerIsObject[depth] = inObject ? 1 : 0
        depth += 1
        inObject = byte === objectOpen
        at = blanksEnd(bytes, at + 1)
        if (bytes[at] !== (inObject ? objectClose : arrayClose)) {
          if (inObject) at = this.#key(at, depth)
          continue
        }
      } else {
        at = byte === quote ? this.#string(at, word, inObject) : this.#bare(at)
        if (depth === 1) this.#end(at)
        at = blanksEnd(bytes, at)
      }
      while (depth > 0 && bytes[at] === (inObject ? objectClose : arrayClose)) {
        depth -= 1
        inObject = outerIsObject[depth] === 1
        if (depth === 1) this.#end(at + 1)
        at = blanksEnd(bytes, at + 1)
      }
      if (depth === 0) return at
      if (bytes[at] !== comma) throw broken(at, "Expecting ',' delimiter")
      at = blanksEnd(bytes, at + 1)
      if (inObject) at = this.#key(at, depth)
    }
  }

  /** Reads the key at `at`; returns where its value starts. */
  #key(at: number, depth: number): number {
    const bytes = this.#bytes
    if (bytes[at] !== quote) throw broken(at, "Expecting property name enclosed in double quotes")
    this.#strings.escaped = false
    const end = this.#strings.end(at + 1)
    this.#bareBytes += end - at - 1
    const word = this.#vocabulary.keys.find(bytes, at + 1, end, this.#strings.escaped)
    if (word?.read && depth === 1 && this.#fields.has(word.name)) throw repeated(word.name)
    this.#word = word
    const next = blanksEnd(bytes, end + 1)
    if (bytes[next] !== colon) throw broken(next, "Expecting ':' delimiter")
    return blanksEnd(bytes, next + 1)
  }

  /** Counts the value that starts at `at`, and what its key says of it. */
  #begin(at: number, byte: number | undefined, depth: number): KeyWord | undefined {
    this.#values += 1
    if (this.#values > valuesMax) throw tooComplex(`has more than ${valuesMax} values`)
    const word = this.#word
    if (word === undefined) return undefined
    this.#word = undefined
    if (word.read && depth === 1) {
      this.#field = word
      this.#fieldStart = at
    }
    if (byte === letterN) return word // null: as good as absent
    if (word.part !== undefined) this.#words[word.part] += 1
    if (word.find) {
      this.#found ??= new Map()
      this.#found.set(word.name, (this.#found.get(word.name) ?? 0) + 1)
    }
    return word
  }

  /** The end of a value at the top level. */
  #end(at: number): void {
    if (this.#field === undefined) return
    this.#fields.set(this.#field.name, { start: this.#fieldStart, end: at })
    this.#field = undefined
  }

  /** The number, `true`, `false` or `null` at `at`. */
  #bare(at: number): number {
    const end = scalarEnd(this.#bytes, at)
    this.#bareBytes += Math.max(bareBytesLeast, end - at)
    return end
  }

  /** The string value at `at`, which is text, a blob, or the name of a part. */
  #string(at: number, word: KeyWord | undefined, inObject: boolean): number {
    const bytes = this.#bytes
    this.#strings.escaped = false
    const start = at + 1
    const end = this.#strings.end(start)
    const blob = inObject && word?.text !== true ? blobClass(bytes, start, end) : undefined
    if (blob === undefined) this.#textBytes += end - start
    else this.#blobs[blob] += 1
    if (word?.type) {
      const part = this.#vocabulary.types.find(bytes, start, end, this.#strings.escaped)?.part
      if (part !== undefined) this.#words[part] += 1
    }
    return end + 1
  }
}

const tooComplex = (how: string): GatewayError => new GatewayError("too_complex", `Request body ${how}`)

const repeated = (name: string): GatewayError =>
  new GatewayError("invalid_request", `Repeated field '${name}' in the request body`, { param: name })

/** Skips white space (RFC 8259 section 2); returns where it ends. */
const blanksEnd = (bytes: Buffer, at: number): number => {
  while (at < bytes.length) {
    const byte = bytes[at]!
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at
    at += 1
  }
  return at
}

const literals = [Buffer.from("true"), Buffer.from("false"), Buffer.from("null")]

const scalarEnd = (bytes: Buffer, at: number): number => {
  const byte = bytes[at]
  if (byte === minus || isDigit(byte)) return numberEnd(bytes, at)
  for (const literal of literals) {
    if (literal[0] === byte && literal.compare(bytes, at, Math.min(at + literal.length, bytes.length)) === 0) {
      return at + literal.length
    }
  }
  throw broken(at, "Expecting value")
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

/** RFC 8259 section 6. */
const numberEnd = (bytes: Buffer, at: number): number => {
  if (bytes[at] === minus) at += 1
  at = bytes[at] === 0x30 ? at + 1 : digitsEnd(bytes, at)
  if (bytes[at] === 0x2e) at = digitsEnd(bytes, at + 1)
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    const signed = bytes[at + 1] === 0x2b || bytes[at + 1] === minus
    at = digitsEnd(bytes, signed ? at + 2 : at + 1)
  }
  return at
}

/** One digit or more. */
const digitsEnd = (bytes: Buffer, at: number): number => {
  if (!isDigit(bytes[at])) throw broken(at, "Invalid number")
  while (isDigit(bytes[at])) at += 1
  return at
}
