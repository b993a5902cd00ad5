/**
 * The way to Redis: every command has a deadline, and while Redis is known to be away commands fail at once instead of
 * queueing. All verbs are idempotent by id, because a reply may be lost after its command was done.
 */

import { storeUnavailable } from "../failure.ts"
import type { Script } from "./scripts.ts"
import { Waiting } from "./waiting.ts"

/** What is needed of a Redis client. */
export interface Client {
  call(command: string, args: readonly (string | number)[]): Promise<unknown>
  /** Drops the connection and makes a new one. */
  reconnect(): void
}

export interface LinkOptions {
  readonly deadlineMs: number
  /** Stop asking after a command that had no answer in time. Not on a cluster, where one node says nothing about others. */
  readonly stopWhenStalled: boolean
  readonly onState: (up: boolean, cause?: unknown) => void
  readonly observe?: (operation: string, seconds: number, failed: boolean) => void
}

const probeEveryMs = 100
/** A connection that answers nothing for so long is replaced: after a network cut, waiting for TCP takes far longer. */
const replaceAfterMs = 1_000

export class Link {
  readonly #client: Client
  readonly #options: LinkOptions
  readonly #waiting: Waiting
  #evalOnly = false
  #usable = false
  #stalled = false
  #told: boolean | undefined
  #why: unknown
  #watchdog: NodeJS.Timeout | undefined
  #probing = false
  #downSince = 0
  #closed = false

  constructor(client: Client, options: LinkOptions) {
    this.#client = client
    this.#options = options
    this.#waiting = new Waiting(options.deadlineMs)
  }

  get up(): boolean {
    return this.#usable && !this.#stalled && !this.#closed
  }

  /** The connection is made and checked, or gone. */
  usable(usable: boolean, why?: unknown): void {
    this.#usable = usable
    this.#why = why
    if (usable) this.#stalled = false
    this.#tell()
  }

  close(): void {
    this.#closed = true
    this.#waiting.stop()
    clearInterval(this.#watchdog)
  }

  async command(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.#observed(name.toLowerCase(), () => this.#send(name, args))
  }

  async script(script: Script, keys: readonly string[], ...args: readonly (string | number)[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args]
    return this.#observed(script.name, async () => {
      if (this.#evalOnly) return this.#send("EVAL", [script.source, ...rest])
      try {
        return await this.#send("EVALSHA", [script.sha, ...rest])
      } catch (error) {
        if (!this.#unknownScript(error)) throw error
        return this.#send("EVAL", [script.source, ...rest])
      }
    })
  }

  /** Redis was restarted (EVAL teaches it the script), or an operator allows EVAL only. Nothing was done in either case. */
  #unknownScript(error: unknown): boolean {
    const message = error instanceof Error ? error.message : ""
    if (message.startsWith("NOSCRIPT")) return true
    this.#evalOnly = /^(NOPERM|ERR unknown command)/.test(message)
    return this.#evalOnly
  }

  async #observed(operation: string, work: () => Promise<unknown>): Promise<unknown> {
    const started = performance.now()
    let failed = false
    try {
      return await work()
    } catch (cause) {
      failed = true
      throw storeUnavailable(cause)
    } finally {
      this.#options.observe?.(operation, (performance.now() - started) / 1_000, failed)
    }
  }

  #send(name: string, args: readonly (string | number)[]): Promise<unknown> {
    if (!this.up) return Promise.reject(new Error("Redis is away", { cause: this.#why }))
    return new Promise((resolve, reject) => {
      const done = this.#waiting.start(() => {
        const late = new Error(`Redis did not answer ${name} within ${this.#options.deadlineMs} ms`)
        reject(late)
        this.#stall(late)
      })
      this.#client.call(name, args).then(
        reply => {
          done()
          resolve(reply)
        },
        error => {
          done()
          reject(error)
        },
      )
    })
  }

  #stall(why: Error): void {
    if (!this.#options.stopWhenStalled || this.#stalled) return
    this.#stalled = true
    this.#why = why
    this.#tell()
  }

  #tell(): void {
    if (this.#closed || this.up === this.#told) return
    this.#told = this.up
    this.#options.onState(this.up, this.up ? undefined : this.#why)
    clearInterval(this.#watchdog)
    if (this.up) return
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
    this.#probing = true
    try {
      await this.#client.call("PING", [])
      this.#stalled = false
      this.#tell()
    } catch (error) {
      this.#why = error
    } finally {
      this.#probing = false
    }
  }
}
