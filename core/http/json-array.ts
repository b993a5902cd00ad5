/** Cuts a JSON array that arrives piece by piece into the bytes of its elements, without parsing them. */

import type { StreamEvent } from "../adapter.ts"
import type { Splitter, SplitterOptions } from "./sse.ts"

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const arrayOpen = 0x5b
const arrayClose = 0x5d
const objectOpen = 0x7b
const objectClose = 0x7d
const space = 0x20

/**
 * Each element of the outermost array is one event. A lone value without an array is one event too: vendors answer a
 * stream with a bare error object. An element that the end of the stream cuts is not delivered.
 */
export class JsonArraySplitter implements Splitter {
  readonly #onEvent: (event: StreamEvent) => void
  readonly #options: SplitterOptions
  /** Pieces of the unfinished element, from chunks that are gone. */
  #pieces: Buffer[] = []
  #kept = 0
  /** Brackets open inside the element. */
  #depth = 0
  #inElement = false
  #inString = false
  #escaped = false
  /** The element is too large: its bytes are passed over. */
  #skipping = false
  #opened = false
  /** A lone value: whatever follows it is ignored. */
  #lone = false
  /** Where the last element ended: in this chunk, and bytes that came since then. */
  #endedAt = 0
  #since = 0
  #done = false

  constructor(onEvent: (event: StreamEvent) => void, options: SplitterOptions) {
    this.#onEvent = onEvent
    this.#options = options
  }

  /** What came is no array, but one value. */
  get lone(): boolean {
    return this.#lone
  }

  /** It began and never ended, such as a word. */
  get strange(): boolean {
    return this.#inElement
  }

  /** Separators and the closing bracket count: an element of somebody else's may follow in place of them. */
  get rest(): number {
    return this.#skipping || this.#lone ? 0 : this.#since
  }

  push(chunk: Buffer): void {
    this.#endedAt = 0 - this.#since
    let begin = 0
    let offset = 0
    while (offset < chunk.length && !this.#done) {
      if (this.#inString) {
        offset = this.#passString(chunk, offset)
        continue
      }
      const byte = chunk[offset] as number
      if (!this.#inElement) {
        this.#between(byte)
        begin = offset
      }
      if (this.#inElement) this.#inside(chunk, begin, offset, byte)
      offset++
    }
    if (this.#inElement) this.#keep(chunk, begin)
    this.#since = chunk.length - this.#endedAt
  }

  end(): void {
    this.#pieces = []
    this.#kept = this.#since = 0
    this.#done = true
  }

  /** A byte outside of any element: may open the array, close it, or begin an element. */
  #between(byte: number): void {
    if (byte <= space || byte === comma) return
    if (!this.#opened && byte === arrayOpen) this.#opened = true
    else if (byte === arrayClose) this.#done = true
    else {
      this.#lone = !this.#opened
      this.#inElement = true
    }
  }

  /** An object or array ends with its own last byte, a number or word with what follows it. */
  #inside(chunk: Buffer, begin: number, offset: number, byte: number): void {
    if (byte === quote) this.#inString = true
    else if (byte === objectOpen || byte === arrayOpen) this.#depth++
    else if (this.#depth === 0 && (byte === comma || byte === arrayClose)) {
      this.#finish(chunk, begin, offset)
      this.#done = byte === arrayClose
    } else if (byte === objectClose || byte === arrayClose) {
      if (--this.#depth === 0) this.#finish(chunk, begin, offset + 1)
    }
  }

  /** The offset behind the string's closing quote, or the chunk's length. */
  #passString(chunk: Buffer, from: number): number {
    let offset = from
    if (this.#escaped) {
      this.#escaped = false
      offset++
    }
    for (; offset < chunk.length; offset++) {
      const byte = chunk[offset]
      if (byte === backslash) {
        if (++offset === chunk.length) this.#escaped = true
      } else if (byte === quote) {
        this.#inString = false
        return offset + 1
      }
    }
    return chunk.length
  }

  #finish(chunk: Buffer, begin: number, end: number): void {
    const last = chunk.subarray(begin, end)
    this.#endedAt = end
    const pieces = this.#pieces
    const tooLarge = !this.#skipping && this.#kept + last.length > this.#options.maxEventBytes
    const deliver = !this.#skipping && !tooLarge
    this.#pieces = []
    this.#kept = 0
    this.#inElement = this.#skipping = false
    this.#done = this.#lone
    if (tooLarge) this.#options.onOverflow()
    if (deliver) this.#onEvent({ data: pieces.length === 0 ? last : Buffer.concat([...pieces, last]) })
  }

  #keep(chunk: Buffer, begin: number): void {
    if (this.#skipping) return
    this.#kept += chunk.length - begin
    if (this.#kept <= this.#options.maxEventBytes) {
      this.#pieces.push(Buffer.from(chunk.subarray(begin)))
      return
    }
    this.#skipping = true
    this.#pieces = []
    this.#options.onOverflow()
  }
}
