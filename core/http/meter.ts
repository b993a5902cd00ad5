/** Reads what a vendor sends, before any translation: usage, the sign of the first events, and the plugins' watchers. */

import type { Api, Fault, Framing, StreamEvent, UsageReader, UsageReport } from "../adapter.ts"
import { GatewayError } from "../errors.ts"
import { soundUsage } from "../kit/sound-usage.ts"
import type { Watcher } from "../plugin.ts"
import type { OwnedWatcher } from "./call.ts"
import { JsonArraySplitter } from "./json-array.ts"
import { SseSplitter } from "./sse.ts"

/** A whole answer above this, or an event above the next, is relayed unread and counted as an overflow. */
const wholeBytesMax = 64 * 1024 * 1024
const eventBytesMax = 8 * 1024 * 1024

/** What a vendor says went wrong, and the bytes that say it. */
export interface FaultEvent {
  readonly fault: Fault
  readonly data: Buffer
}

export class Meter {
  readonly reader: UsageReader
  readonly framing: Framing | undefined
  /** What the first telling event was. */
  sign: "content" | FaultEvent | undefined
  events = 0
  /** Of the first error event that came after content. */
  #late: Fault | undefined
  #badCount = false
  /** Some of it was too large, or in no form that we know. */
  #unread = false
  #ended = false
  readonly #api: Api
  readonly #watchers: readonly OwnedWatcher[]
  readonly #onOverflow: () => void
  readonly #onEvent: (event: StreamEvent) => void
  readonly #onFault: (told: FaultEvent) => void
  readonly #splitter: SseSplitter | JsonArraySplitter | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  /** More than blanks, with which some vendors say that they live. */
  #said = false

  constructor(options: {
    readonly api: Api
    readonly framing: Framing | undefined
    readonly watchers: readonly OwnedWatcher[]
    readonly onOverflow: () => void
    /** Each event after it was metered, unless it is a fault before any content. */
    readonly onEvent: (event: StreamEvent) => void
    /** Each error event, wherever it stands; its bytes are those of the stream. */
    readonly onFault: (told: FaultEvent) => void
  }) {
    this.reader = options.api.usage()
    this.framing = options.framing
    this.#api = options.api
    this.#watchers = options.watchers
    this.#onOverflow = options.onOverflow
    this.#onEvent = options.onEvent
    this.#onFault = options.onFault
    if (options.framing !== undefined) {
      const limits = { maxEventBytes: eventBytesMax, onOverflow: () => this.#overflow() }
      const onEvent = (event: StreamEvent): void => this.#event(event)
      this.#splitter =
        options.framing === "sse" ? new SseSplitter(onEvent, limits) : new JsonArraySplitter(onEvent, limits)
    }
  }

  head(status: number, fields: Readonly<Record<string, string | undefined>>): void {
    this.#tell(watcher => watcher.head?.(status, fields))
  }

  /** Decoded bytes, in any cut. Throws what a translation throws. */
  push(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#said ||= chunk.some(byte => byte > blank)
    // A copy for each: nobody changes a relayed byte.
    if (this.#watchers.length > 0) this.#tell(watcher => watcher.data?.(Buffer.from(chunk)))
    if (this.#splitter !== undefined) this.#splitter.push(chunk)
    else this.#collect(chunk)
  }

  /** The last byte was pushed. Returns the whole answer (empty for a stream). */
  end(): Buffer {
    this.#ended = true
    this.#tell(watcher => watcher.end?.())
    this.#splitter?.end()
    if (this.#splitter !== undefined) return empty
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
    this.#chunks = []
    this.reader.whole(body)
    return body
  }

  report(): UsageReport {
    const report = this.reader.report()
    if (report.usage === undefined) return report
    const usage = soundUsage(report.usage)
    if (usage === report.usage) return report
    this.#badCount = true
    return { ...report, usage }
  }

  /** Kinds of what was odd in what was reported. */
  get surprises(): readonly string[] {
    const told = this.reader.surprises ?? []
    return this.#badCount && !told.includes(badCount) ? [...told, badCount] : told
  }

  /** An error event: what came before it, if anything, is all that there is. */
  get fault(): Fault | undefined {
    return typeof this.sign === "object" ? this.sign.fault : this.#late
  }

  /** Bytes at the end of all that came that belong to an unfinished event: no client can use them yet. */
  get rest(): number {
    return this.#splitter?.rest ?? 0
  }

  /** Bytes came in a coding that nobody knows. */
  lost(): void {
    this.#unread = true
  }

  /** Content came, whether or not a word of it could be counted. */
  get seen(): boolean {
    if (this.sign === "content" || this.#unread) return true
    return this.#said && (this.#noneRead || this.reader.surprises?.includes("bad_json") === true)
  }

  /** Of what came nothing was read. Comments between the events of a stream say nothing. */
  get #noneRead(): boolean {
    const splitter = this.#splitter
    if (splitter === undefined) return !this.#ended
    return this.events === 0 && (splitter.strange || splitter.rest > 0)
  }

  /** The vendor is not to blame for a watcher. */
  #tell(say: (watcher: Watcher) => void): void {
    for (const { plugin, watcher } of this.#watchers) {
      try {
        say(watcher)
      } catch (cause) {
        throw new GatewayError("plugin_failed", "Internal error", { cause, plugin })
      }
    }
  }

  #collect(chunk: Buffer): void {
    if (this.#bytes <= wholeBytesMax) this.#chunks.push(chunk)
    else if (!this.#unread) {
      this.#chunks = []
      this.#overflow()
    }
  }

  #overflow(): void {
    this.#unread = true
    this.#onOverflow()
  }

  #event(event: StreamEvent): void {
    this.events += 1
    // A stream was asked for and a whole answer came: one JSON value, but no array.
    if (this.#splitter instanceof JsonArraySplitter && this.#splitter.lone) this.reader.whole(event.data)
    else this.reader.event(event)
    if (this.sign === undefined) this.#judge(event)
    else if (event.data.includes(errorWord)) this.#judgeLate(event)
    if (this.sign === undefined || this.sign === "content") this.#onEvent(event)
  }

  #judge(event: StreamEvent): void {
    const sign = this.#api.sign(event)
    if (sign.sign === "content") this.sign = "content"
    else if (sign.sign === "fault") {
      this.sign = { fault: sign.fault, data: Buffer.from(event.data) }
      this.#onFault(this.sign)
    }
  }

  #judgeLate(event: StreamEvent): void {
    const sign = this.#api.sign(event)
    if (sign.sign !== "fault") return
    this.#late ??= sign.fault
    this.#onFault({ fault: sign.fault, data: event.data })
  }
}

/** Stands in every error event that vendors send; a search costs less than a parse. */
const errorWord = Buffer.from('"error"')
const empty = Buffer.alloc(0)
const blank = 0x20
const badCount = "bad_count"
