/**
 * Cuts a stream of bytes into server-sent events (WHATWG HTML, section 9.2), without decoding it.
 * The hottest loop of the product: one jump to the next line end, no copy while an event lies in one chunk.
 */

import type { StreamEvent } from "../adapter.ts"

export interface SplitterOptions {
  /** An event larger than this is skipped to its end. */
  readonly maxEventBytes: number
  /** Called once for each event that is skipped. */
  onOverflow(): void
}

/** Cuts the bytes of a streamed answer into events, whatever the chunks are. */
export interface Splitter {
  push(chunk: Buffer): void
  /** Bytes at the end of all that was pushed that belong to an event which has not ended. */
  readonly rest: number
  /** Bytes came that are no part of such an answer: nobody could read them. */
  readonly strange: boolean
  /** The upstream ended. */
  end(): void
}

const lineFeed = 10
const carriageReturn = 13
const space = 32
const colon = 58
const dataField = Buffer.from("data")
const eventField = Buffer.from("event")
/** A comment has no name; the other two are for clients that lost their connection. */
const idleFields = ["", "id", "retry"].map(name => Buffer.from(name))
const lineFeedBytes = Buffer.from([lineFeed])
const smallestStore = 4_096
/** A store above this is given back once it is empty. */
const largestIdleStore = 65_536

/** Delivers an event at its blank line, or at the end of the stream where that line is missing. */
export class SseSplitter implements Splitter {
  strange = false
  readonly #onEvent: (event: StreamEvent) => void
  readonly #options: SplitterOptions
  /** Bytes of the unfinished event, kept between chunks; `#kept` of them are in use. */
  #store: Buffer = Buffer.alloc(0)
  #kept = 0
  /** Offsets into the bytes at hand: where the event and its current line begin, how far line ends were looked for. */
  #event = 0
  #line = 0
  #searched = 0
  /** Pairs of offsets: begin and end of each `data` line of the event; the first `#marks` numbers are in use. */
  readonly #data: number[] = []
  #marks = 0
  #type: string | undefined
  /** The type of the event before, as its bytes and as text: most events are of that type too. */
  #lastType = { bytes: Buffer.alloc(0), text: "" }
  /** The last chunk ended with CR: an LF at the start of the next one belongs to it. */
  #afterCarriage = false
  #firstLine = true
  /** Inside an event that is too large; `#lineSeen` tells that bytes of its current line were dropped. */
  #skipping = false
  #lineSeen = false

  constructor(onEvent: (event: StreamEvent) => void, options: SplitterOptions) {
    this.#onEvent = onEvent
    this.#options = options
  }

  get rest(): number {
    return this.#skipping ? 0 : this.#kept
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    const bytes = this.#kept === 0 ? chunk : this.#append(chunk)
    this.#readLines(bytes)
    this.#keepRest(bytes)
  }

  end(): void {
    const bytes = this.#store.subarray(0, this.#kept)
    if (!this.#skipping && this.#line < bytes.length) this.#takeLine(bytes, this.#line, bytes.length, bytes.length)
    if (!this.#skipping) this.#deliver(bytes, bytes.length)
    this.#store = Buffer.alloc(0)
    this.#kept = this.#event = this.#line = this.#searched = 0
  }

  #readLines(bytes: Buffer): void {
    const length = bytes.length
    let line = this.#line
    let from = this.#searched
    if (this.#afterCarriage) {
      this.#afterCarriage = false
      if (bytes[from] === lineFeed) line = ++from
    }
    let lf = find(bytes, lineFeed, from)
    let cr = find(bytes, carriageReturn, from)
    for (;;) {
      const end = Math.min(lf, cr)
      if (end === length) break
      let next = end + 1
      if (end === cr) {
        if (next === length) this.#afterCarriage = true
        else if (bytes[next] === lineFeed) next++
      }
      this.#takeLine(bytes, line, end, next)
      line = next
      if (lf < next) lf = bytes[next] === lineFeed ? next : find(bytes, lineFeed, next)
      if (cr < next) cr = find(bytes, carriageReturn, next)
    }
    this.#line = line
  }

  /** One line without its end; the next one begins at `next`. */
  #takeLine(bytes: Buffer, begin: number, end: number, next: number): void {
    if (this.#skipping) {
      if (begin === end && !this.#lineSeen) this.#startAt(next)
      this.#lineSeen = false
      return
    }
    if (begin === end) {
      this.#deliver(bytes, end)
      this.#startAt(next)
      return
    }
    let start = begin
    if (this.#firstLine) {
      this.#firstLine = false
      if (bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf) start += 3
    }
    this.#takeField(bytes, start, end)
    // Lines that say nothing (comments, ids) need not be kept while the event is empty.
    if (this.#marks === 0 && this.#type === undefined) this.#event = next
  }

  #takeField(bytes: Buffer, start: number, end: number): void {
    if (isField(bytes, start, end, dataField)) {
      this.#data[this.#marks++] = valueAt(bytes, start + dataField.length, end)
      this.#data[this.#marks++] = end
    } else if (isField(bytes, start, end, eventField)) {
      this.#type = this.#typeAt(bytes, valueAt(bytes, start + eventField.length, end), end)
    } else if (!idleFields.some(name => isField(bytes, start, end, name))) this.strange = true
  }

  #typeAt(bytes: Buffer, start: number, end: number): string {
    const last = this.#lastType.bytes
    if (end - start === last.length && beginsWith(bytes, start, last)) return this.#lastType.text
    const text = bytes.toString("utf8", start, end)
    this.#lastType = { bytes: Buffer.from(bytes.subarray(start, end)), text }
    return text
  }

  #deliver(bytes: Buffer, end: number): void {
    const data = this.#data
    if (this.#marks === 0) return
    if (end - this.#event > this.#options.maxEventBytes) {
      this.#options.onOverflow()
      return
    }
    const joined = this.#marks === 2 ? bytes.subarray(data[0], data[1]) : joinLines(bytes, data.slice(0, this.#marks))
    const type = this.#type
    this.#onEvent(type === undefined || type === "" ? { data: joined } : { type, data: joined })
  }

  #startAt(offset: number): void {
    this.#event = offset
    this.#marks = 0
    this.#type = undefined
    this.#firstLine = false
    this.#skipping = false
  }

  #keepRest(bytes: Buffer): void {
    const rest = bytes.length - this.#event
    if (!this.#skipping && rest > this.#options.maxEventBytes) {
      this.#startAt(bytes.length)
      this.#skipping = true
      this.#options.onOverflow()
    }
    if (this.#skipping) {
      this.#drop(bytes.length)
      return
    }
    if (rest > 0) this.#save(bytes, rest)
    else if (this.#store.length > largestIdleStore) this.#store = Buffer.alloc(0)
    this.#rebase(rest)
  }

  #drop(length: number): void {
    if (this.#line < length) this.#lineSeen = true
    this.#store = Buffer.alloc(0)
    this.#event = this.#line = length
    this.#rebase(0)
  }

  #rebase(rest: number): void {
    const shift = this.#event
    if (shift > 0) for (let index = 0; index < this.#marks; index++) this.#data[index]! -= shift
    this.#line -= shift
    this.#event = 0
    this.#searched = this.#kept = rest
  }

  #save(bytes: Buffer, rest: number): void {
    const inPlace = bytes.buffer === this.#store.buffer && bytes.byteOffset === this.#store.byteOffset
    if (inPlace) this.#store.copyWithin(0, this.#event, this.#event + rest)
    else {
      this.#reserve(rest)
      bytes.copy(this.#store, 0, this.#event)
    }
  }

  #append(chunk: Buffer): Buffer {
    this.#reserve(this.#kept + chunk.length)
    chunk.copy(this.#store, this.#kept)
    return this.#store.subarray(0, this.#kept + chunk.length)
  }

  #reserve(size: number): void {
    if (size <= this.#store.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(smallestStore, size, this.#store.length * 2))
    this.#store.copy(larger, 0, 0, this.#kept)
    this.#store = larger
  }
}

/** The offset of a byte, or the length where there is none. */
const find = (bytes: Buffer, byte: number, from: number): number => {
  const at = bytes.indexOf(byte, from)
  return at < 0 ? bytes.length : at
}

/** Does a line begin with this field name, then a colon or its end? */
const isField = (bytes: Buffer, start: number, end: number, name: Buffer): boolean => {
  const after = start + name.length
  if (after > end || (after < end && bytes[after] !== colon)) return false
  return beginsWith(bytes, start, name)
}

const beginsWith = (bytes: Buffer, start: number, word: Buffer): boolean => {
  for (let index = 0; index < word.length; index++) if (bytes[start + index] !== word[index]) return false
  return true
}

/** Where the value begins: behind the colon and at most one space. */
const valueAt = (bytes: Buffer, colonAt: number, end: number): number => {
  if (colonAt >= end) return end
  return colonAt + 1 < end && bytes[colonAt + 1] === space ? colonAt + 2 : colonAt + 1
}

/** Several `data` lines become one text with line feeds between them. */
const joinLines = (bytes: Buffer, offsets: readonly number[]): Buffer => {
  const lines: Buffer[] = []
  for (let index = 0; index < offsets.length; index += 2) {
    if (index > 0) lines.push(lineFeedBytes)
    lines.push(bytes.subarray(offsets[index], offsets[index + 1]))
  }
  return Buffer.concat(lines)
}
