/**
 * Commands on one connection that is ready: those of one turn of the event loop leave in one write, answers come in their
 * order. A client that makes objects, promises and timers of its own for each command costs more than all the rest.
 */

import type { Duplex } from "node:stream"
import { RedisError, type Reply, ReplyReader } from "./replies.ts"

export type Word = string | number

/** Who asked: exactly one of the two is called. */
export interface Asker {
  answered(reply: unknown): void
  failed(error: unknown): void
}

/** Taking an array apart from its front costs more than keeping some that were answered. */
const answeredMost = 1_024

export class Wire {
  readonly #stream: Duplex
  readonly #broken: (error: Error) => void
  readonly #reader = new ReplyReader(reply => this.#answer(reply))
  #askers: Asker[] = []
  /** The asker of the next answer. */
  #next = 0
  #out = ""
  #closed: unknown

  /** @param broken these are no answers of Redis: the connection is of no use */
  constructor(stream: Duplex, broken: (error: Error) => void) {
    this.#stream = stream
    this.#broken = broken
    stream.on("data", chunk => this.#read(chunk))
  }

  ask(name: string, words: readonly Word[], asker: Asker): void {
    if (this.#closed !== undefined) return asker.failed(this.#closed)
    if (!this.#stream.writable) return asker.failed(new Error("The connection to Redis is ending"))
    this.#askers.push(asker)
    if (this.#out === "") setImmediate(this.#write)
    this.#out += encode(name, words)
  }

  /** The connection is gone: what was asked may have been done or not. */
  close(why: unknown): void {
    this.#closed ??= why
    const waiting = this.#askers.slice(this.#next)
    this.#askers = []
    this.#next = 0
    for (const asker of waiting) asker.failed(why)
  }

  readonly #write = (): void => {
    const out = this.#out
    this.#out = ""
    if (this.#stream.writable) this.#stream.write(out)
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.read(chunk)
    } catch (error) {
      this.#broken(error as Error)
    }
  }

  #answer(reply: Reply): void {
    const asker = this.#askers[this.#next++]
    if (asker === undefined) throw new Error("Redis answered what nobody asked")
    if (this.#next === this.#askers.length || this.#next === answeredMost) {
      this.#askers = this.#askers.slice(this.#next)
      this.#next = 0
    }
    if (reply instanceof RedisError) asker.failed(reply)
    else asker.answered(reply)
  }
}

const encode = (name: string, words: readonly Word[]): string => {
  let text = `*${words.length + 1}\r\n$${name.length}\r\n${name}\r\n`
  for (const word of words) {
    const given = typeof word === "string" ? word : String(word)
    text += `$${Buffer.byteLength(given)}\r\n${given}\r\n`
  }
  return text
}
