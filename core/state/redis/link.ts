/**
 * The way to Redis: every command has a deadline, and while Redis is known to be away commands fail at once instead of
 * queueing. All verbs are idempotent by id, because a reply may be lost after its command was done.
 */

import { storeUnavailable } from "../failure.ts"
import type { Probe } from "./probe.ts"
import { RedisError } from "./replies.ts"
import type { Script } from "./scripts.ts"
import { Waiter, Waiting } from "./waiting.ts"
import type { Asker, Word } from "./wire.ts"

/** What is needed of a Redis client. */
export interface Client {
  ask(name: string, words: readonly Word[], asker: Asker): void
  /** Drops the connection and makes a new one. */
  reconnect(): void
}

export interface LinkOptions {
  readonly deadlineMs: number
  /** Asked before a connection is used, and again after what made it doubtful. */
  readonly probe: Probe
  readonly onState: (up: boolean, cause?: unknown) => void
  readonly observe?: (operation: string, seconds: number, failed: boolean) => void
}

const probeEveryMs = 100
/** A connection that answers nothing for so long is replaced: after a network cut, waiting for TCP takes far longer. */
const replaceAfterMs = 1_000

/** After a failover the old master refuses writes; the new one is found by connecting again. */
const movedAway = /^READONLY /

export class Link {
  readonly #client: Client
  readonly #options: LinkOptions
  readonly #waiting: Waiting
  #evalOnly = false
  #usable = false
  /** The probe passed, and nothing spoke against it since. */
  #proven = false
  #told: boolean | undefined
  #why: unknown
  /** Reasons that were told since Redis is away. */
  readonly #reasons = new Set<string>()
  #watchdog: NodeJS.Timeout | undefined
  #probing = false
  #downSince = 0
  #closed = false
  readonly #ends: Ends = {
    answered: (call, reply) => this.#answered(call, reply),
    failed: (call, error) => this.#failed(call, error),
    late: call => this.#late(call),
  }

  constructor(client: Client, options: LinkOptions) {
    this.#client = client
    this.#options = options
    this.#waiting = new Waiting(options.deadlineMs)
  }

  get up(): boolean {
    return this.#usable && this.#proven && !this.#closed
  }

  /** The connection is made and checked. Resolves when the probe was answered, or never will be. */
  connected(): Promise<void> {
    this.#usable = true
    this.#proven = false
    return this.#probe()
  }

  disconnected(why: Error): void {
    this.#usable = false
    this.away(why)
  }

  /** Tells it, unless commands can be sent. */
  away(why: Error): void {
    if (this.up) return
    this.#why = why
    this.#tell()
  }

  /** Something speaks against it; a new reason is told also when it is known to be away. */
  refused(why: Error): void {
    this.#proven = false
    this.#why = why
    const isNew = this.#told === false && !this.#reasons.has(reasonOf(why))
    this.#reasons.add(reasonOf(why))
    if (isNew) this.#options.onState(false, why)
    else this.#tell()
  }

  close(): void {
    this.#closed = true
    this.#waiting.stop()
    clearInterval(this.#watchdog)
  }

  command(name: string, ...words: readonly Word[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#start(new Call(this.#ends, name.toLowerCase(), name, words, resolve, reject))
    })
  }

  script(script: Script, keys: readonly string[], ...args: readonly Word[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const [name, known] = this.#evalOnly ? ["EVAL", script.source] : ["EVALSHA", script.sha]
      const words = [known, keys.length, ...keys, ...args]
      this.#start(new Call(this.#ends, script.name, name, words, resolve, reject, script.source))
    })
  }

  #start(call: Call): void {
    call.startedAt = performance.now()
    this.#send(call, call.startedAt)
  }

  #send(call: Call, now: number): void {
    if (!this.up) return this.#failed(call, new Error("Redis is away", { cause: this.#why }))
    this.#waiting.start(call, now)
    this.#client.ask(call.name, call.words, call)
  }

  #answered(call: Call, reply: unknown): void {
    this.#end(call, false)
    call.resolve(reply)
  }

  #failed(call: Call, error: unknown): void {
    if (call.name === "EVALSHA" && this.#unknownScript(error)) return this.#sendSource(call)
    this.#end(call, true)
    call.reject(storeUnavailable(error))
    if (error instanceof Error && this.#options.probe.refusesAll.test(error.message)) this.#stall(error)
  }

  #late(call: Call): void {
    const late = new Error(`Redis did not answer ${call.name} within ${this.#options.deadlineMs} ms`)
    this.#failed(call, late)
    if (this.#options.probe.oneServer) this.#stall(late)
  }

  #end(call: Call, failed: boolean): void {
    call.over = true
    this.#waiting.end(call)
    this.#options.observe?.(call.operation, (performance.now() - call.startedAt) / 1_000, failed)
  }

  /** Redis was restarted (EVAL teaches it the script), or an operator allows EVAL only. Nothing was done in either case. */
  #unknownScript(error: unknown): boolean {
    const message = error instanceof Error ? error.message : ""
    if (message.startsWith("NOSCRIPT")) return true
    this.#evalOnly = /^(NOPERM|ERR unknown command)/.test(message)
    return this.#evalOnly
  }

  #sendSource(call: Call): void {
    this.#waiting.end(call)
    call.name = "EVAL"
    call.words = [call.source, ...call.words.slice(1)]
    this.#send(call, performance.now())
  }

  #stall(why: Error): void {
    if (!this.up) return
    this.refused(why)
    if (movedAway.test(why.message)) this.#client.reconnect()
  }

  #tell(): void {
    if (this.#closed || this.up === this.#told) return
    this.#told = this.up
    this.#options.onState(this.up, this.up ? undefined : this.#why)
    clearInterval(this.#watchdog)
    if (this.up) return this.#reasons.clear()
    this.#downSince = performance.now()
    this.#watchdog = setInterval(() => this.#look(), probeEveryMs)
    this.#watchdog.unref()
  }

  #look(): void {
    if (performance.now() - this.#downSince > replaceAfterMs) {
      this.#downSince = performance.now()
      this.#client.reconnect()
    }
    if (this.#usable && !this.#probing) void this.#probe()
  }

  /** One question at a time: its answer comes after those of all commands that were sent before. */
  async #probe(): Promise<void> {
    const { probe } = this.#options
    this.#probing = true
    try {
      this.#judge(probe.refusal(await this.#ask(probe)))
    } catch (error) {
      if (error instanceof RedisError) this.refused(error)
      else this.#why = error
    } finally {
      this.#probing = false
    }
  }

  #ask({ name, words }: Probe): Promise<unknown> {
    return new Promise((answered, failed) => this.#client.ask(name, words, { answered, failed }))
  }

  #judge(refusal: Error | undefined): void {
    if (refusal !== undefined) return this.refused(refusal)
    this.#proven = true
    this.#tell()
  }
}

/** Redis' first word; what follows it differs from script to script. */
const reasonOf = (why: Error): string => (why instanceof RedisError ? /^\S*/.exec(why.message)![0] : why.message)

/** How a call ends. */
interface Ends {
  answered(call: Call, reply: unknown): void
  failed(call: Call, error: unknown): void
  late(call: Call): void
}

/** One command under way. It answers once: a reply that comes after its deadline is of no use to anybody. */
class Call extends Waiter implements Asker {
  startedAt = 0
  over = false
  readonly operation: string
  name: string
  words: readonly Word[]
  /** Of the script, when it is one. */
  readonly source: string
  readonly resolve: (reply: unknown) => void
  readonly reject: (error: unknown) => void
  readonly #ends: Ends

  constructor(
    ends: Ends,
    operation: string,
    name: string,
    words: readonly Word[],
    resolve: (reply: unknown) => void,
    reject: (error: unknown) => void,
    source = "",
  ) {
    super()
    this.#ends = ends
    this.operation = operation
    this.name = name
    this.words = words
    this.source = source
    this.resolve = resolve
    this.reject = reject
  }

  answered(reply: unknown): void {
    if (!this.over) this.#ends.answered(this, reply)
  }

  failed(error: unknown): void {
    if (!this.over) this.#ends.failed(this, error)
  }

  expire(): void {
    this.#ends.late(this)
  }
}
