/**
 * A stream: its head waits until the first event with content has passed, because vendors report quota errors and
 * overloads as first events inside a 200. Then bytes go out as they come, at the pace of the client.
 */

import type { StreamEvent } from "../adapter.ts"
import type { GatewayError } from "../errors.ts"
import type { Billed, Draft } from "../plugin.ts"
import type { Answer } from "./answer.ts"
import type { AttemptRun } from "./attempt.ts"
import { bodyContains, errorOf } from "./failure.ts"
import type { FaultEvent } from "./meter.ts"

/** How much of a stream is read before its head is sent. */
const peek = { events: 8, bytes: 64 * 1024, ms: 10_000 }
/** How long the vendor may be silent before a translated stream sends a ping. */
const silenceMs = 15_000
/** A relayed event waits for its last byte, up to so many: after half an event no error could be told. */
const eventHeldMax = 256 * 1024

export class StreamAnswer implements Answer {
  sent = false
  /** When the head goes out without any content, and then when the silence has lasted long enough. */
  deadline: number
  place: number | undefined
  readonly #run: AttemptRun
  /** Relayed bytes that wait, for the head or for the end of their event. */
  #held: Buffer[] = []
  #heldBytes = 0
  #forwarded = false
  /** The first content was. */
  #counted = false
  /** Translated bytes that wait for the end of the chunk that caused them. */
  #out: (string | Buffer)[] = []
  /** An id is being recorded; the head follows. */
  #opening = false
  /** Of a relayed stream: an event that is not for the client, and has not gone out. */
  #ours: FaultEvent | undefined

  constructor(run: AttemptRun) {
    this.#run = run
    this.deadline = run.parts.clock.steady() + peek.ms
    run.parts.deadlines.watch(this)
  }

  /** After the meter saw it. A throw ends the stream. */
  event(event: StreamEvent): void {
    const { draft } = this.#run.parts
    if (this.#run.detached) return
    if (!this.#counted && this.#run.meter.sign === "content") this.#countFirst()
    if (draft.verb !== "stream") return
    const out = draft.push(event)
    if (out.length > 0) this.#out.push(out)
  }

  /** Not with the head: that may have gone out long before, for want of news. */
  #countFirst(): void {
    this.#counted = true
    this.#run.firstToken()
  }

  /** A fault of our account, or one that contains our secret, is never shown to the client. */
  fault({ fault, data }: FaultEvent): void {
    const { draft, secret } = this.#run.parts
    if (draft.verb !== "relay" || (fault.kind !== "account" && !bodyContains(data, secret))) return
    this.#ours ??= { fault, data: Buffer.from(data) }
  }

  data(chunk: Buffer): void {
    if (this.sent) return this.#passOn(chunk)
    this.#hold(chunk)
    this.#decide()
  }

  /** The head may have gone out because nothing else had come: an error before any content can still follow. */
  #passOn(chunk: Buffer): void {
    const { fault } = this.#run.meter
    if (fault !== undefined && this.#run.parts.draft.verb === "stream") void this.#run.broken(errorOf(fault))
    else this.#forward(chunk)
  }

  read(): void {
    if (!this.sent) this.#decide()
  }

  begin(): void {
    if (this.#run.meter.sign !== "content") return
    if (!this.sent) this.#open()
    this.#forward(empty)
  }

  async end(): Promise<void> {
    const { call, draft } = this.#run.parts
    if (!this.sent && this.#decide() === "failed") return
    const last = draft.verb === "stream" ? draft.end() : ""
    await this.#run.saw()
    if (!this.sent && !this.#run.detached) this.#open() // a stream that ends before any content passes as it is
    if (this.#ours !== undefined) return this.#withhold(empty, this.#ours)
    if (draft.verb === "relay") this.#release(this.#heldBytes)
    if (this.#out.length > 0) call.client.write(this.#takeOut())
    this.close()
    const { upstreamEnd } = this.#run
    const billed = await this.#run.bill(upstreamEnd)
    const told = countedBy(draft, billed) ?? last
    await call.client.end(told === "" ? undefined : told)
    this.#run.finish(billed, call.client.gone ? "abandoned" : upstreamEnd)
  }

  async cut(error: GatewayError): Promise<void> {
    const { call, dialect, draft } = this.#run.parts
    if (this.#run.keepsCoding) return call.client.cut() // plain text would be no part of the coding
    const told = dialect.streamError(error, call.id)
    if (draft.verb === "stream") return call.client.end(told)
    // What waits is half an event: it goes with its vendor. The blank line closes one that was too large to wait.
    if (this.#run.meter.framing === "sse") return call.client.end(`\n\n${told}`)
    await call.client.end(`${this.#forwarded ? "," : "["}\n${JSON.stringify(dialect.render(error, call.id))}\n]`)
  }

  /** The deadline passed without news. */
  expire(): void {
    if (this.#run.detached) return
    if (this.sent) this.#ping()
    else if (!this.#opening) this.#open()
  }

  #ping(): void {
    const { call, draft } = this.#run.parts
    if (draft.verb === "stream" && draft.ping !== undefined) call.client.write(draft.ping)
    this.#awaitSilence()
  }

  /** Of a translated stream: a relayed one is silent when its vendor is. */
  #awaitSilence(): void {
    const { clock, deadlines, draft } = this.#run.parts
    this.deadline = clock.steady() + silenceMs
    if (draft.verb === "stream" && draft.ping !== undefined) deadlines.watch(this)
    else deadlines.unwatch(this)
  }

  close(): void {
    this.#run.parts.deadlines.unwatch(this)
  }

  #decide(): "failed" | "waiting" | "open" {
    const { sign, events } = this.#run.meter
    if (typeof sign === "object") {
      this.#run.upstream?.abort()
      const fields = { "content-type": "application/json" }
      this.#run.failed({ fault: sign.fault, raw: { status: sign.fault.status, fields, body: sign.data } })
      return "failed"
    }
    if (sign !== "content" && events < peek.events && this.#heldBytes <= peek.bytes) return "waiting"
    this.#openWhenSeen()
    return "open"
  }

  /** A stored answer's id is recorded before the client can use it. */
  #openWhenSeen(): void {
    if (this.#opening) return
    const seen = this.#run.saw()
    if (seen === undefined) return this.#open()
    this.#opening = true
    this.#run.upstream?.pause()
    const open = (): void => {
      if (!this.sent && !this.#run.detached) this.#open()
      this.#run.upstream?.resume()
    }
    seen.then(open, open)
  }

  #open(): void {
    const { call, draft } = this.#run.parts
    this.#awaitSilence()
    this.sent = true
    this.#run.waited()
    const fields = call.headFields()
    this.#run.vendorFields(fields, draft.verb === "relay")
    if (draft.verb === "stream") fields.push("content-type", "text/event-stream; charset=utf-8")
    fields.push("cache-control", "no-cache", "x-accel-buffering", "no")
    call.client.head(this.#run.status, fields)
    call.client.onDrain(() => this.#run.upstream?.resume())
    this.#forward(empty)
    if (!this.#forwarded) call.client.flush()
  }

  #forward(chunk: Buffer): void {
    const { clock, draft } = this.#run.parts
    if (draft.verb === "stream") {
      if (this.#out.length === 0) return
      this.deadline = clock.steady() + silenceMs
      this.#write(this.#takeOut())
    } else {
      if (this.#ours !== undefined) return this.#withhold(chunk, this.#ours)
      const { rest } = this.#run.meter
      const waits = this.#run.keepsCoding || rest > eventHeldMax ? 0 : rest
      if (waits === 0 && this.#heldBytes === 0) return this.#write(chunk)
      this.#hold(chunk)
      this.#release(this.#heldBytes - waits)
    }
  }

  /** The gateway's own words take the place of the event. */
  #withhold(chunk: Buffer, { fault, data }: FaultEvent): void {
    this.#hold(chunk)
    const bytes = this.#run.keepsCoding ? empty : Buffer.concat(this.#held)
    this.#release(this.#run.meter.framing === "sse" ? eventStart(bytes, data) : elementEnd(bytes, data))
    this.#held = []
    this.#heldBytes = 0
    void this.#run.broken(errorOf({ ...fault, kind: "account" }))
  }

  #hold(chunk: Buffer): void {
    if (this.#run.parts.draft.verb === "relay" && chunk.length > 0) this.#held.push(chunk)
    this.#heldBytes += chunk.length
  }

  /** Sends the first so many of the bytes that wait. */
  #release(bytes: number): void {
    this.#heldBytes -= Math.max(0, bytes)
    for (let left = bytes; left > 0; ) {
      const chunk = this.#held[0] as Buffer
      if (chunk.length <= left) this.#held.shift()
      else this.#held[0] = chunk.subarray(left)
      this.#write(chunk.subarray(0, left))
      left -= chunk.length
    }
  }

  #write(bytes: string | Buffer): void {
    if (bytes.length === 0) return
    this.#forwarded = true
    if (!this.#run.parts.call.client.write(bytes)) this.#run.upstream?.pause()
  }

  #takeOut(): string | Buffer {
    const out = this.#out
    this.#out = []
    if (out.length === 1) return out[0] as string | Buffer
    return out.every(part => typeof part === "string")
      ? out.join("")
      : Buffer.concat(out.map(part => Buffer.from(part as string)))
  }
}

const empty = Buffer.alloc(0)

/** Who asked for the usage of a stream reads what it was billed by, also where the vendor told none. */
const countedBy = (draft: Draft, { source, usage }: Billed): string | undefined =>
  draft.verb === "stream" && source === "counted" && usage !== undefined ? draft.counted?.(usage) : undefined

/** Where the lines of the event with this data begin. */
const eventStart = (bytes: Buffer, data: Buffer): number => {
  const lineFeed = data.indexOf("\n")
  const at = bytes.indexOf(lineFeed === -1 ? data : data.subarray(0, lineFeed))
  const ends = at === -1 ? [] : ["\n\n", "\r\n\r\n", "\r\r"].map(blank => endOf(blank, bytes.subarray(0, at)))
  return Math.max(0, ...ends)
}

const endOf = (blank: string, bytes: Buffer): number => {
  const at = bytes.lastIndexOf(blank)
  return at === -1 ? 0 : at + blank.length
}

/** Where the element before the one with this data ends: the error brings a comma or bracket of its own. */
const elementEnd = (bytes: Buffer, data: Buffer): number => {
  const before = bytes.toString("latin1", 0, Math.max(0, bytes.indexOf(data))).trimEnd()
  return /[,[]$/.test(before) ? before.length - 1 : before.length
}
