/**
 * Group commit: all writes of one turn of the event loop share one transaction, and their promises resolve after its
 * COMMIT. A write is a synchronous function over prepared statements; a group runs in one piece, so that nothing sees
 * it half done.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { storeUnavailable } from "../failure.ts"
import { busyMs } from "./database.ts"

/**
 * With an fsync per group, the next one starts at least this far from one of so many writes: under load, fewer and
 * larger ones. A lone write never waits. Without fsync the idle time costs as much as it saves.
 */
const crowd = 4
const spacingMs = 2
const probeEveryMs = 1_000

export interface GroupOptions {
  /** Every group is on the disk before its promises resolve. */
  readonly fsync: boolean
  readonly onState: (up: boolean, cause?: unknown) => void
  readonly observe?: (operation: string, seconds: number, failed: boolean) => void
}

/** Who keeps in memory what the writes of a group read and change. */
export interface Gatherer {
  /** The transaction has begun: from here on nobody else writes. */
  begun(): void
  /** Writes back what was gathered, before the COMMIT. */
  finish(): void
  /** The group, or one write of it, was rolled back. */
  forget(): void
}

interface Write {
  readonly run: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

type Ended = { readonly value: unknown } | { readonly error: unknown }

export class Groups {
  readonly #database: DatabaseSync
  readonly #options: GroupOptions
  readonly #beginStatement: StatementSync
  readonly #commitStatement: StatementSync
  #queue: Write[] = []
  #scheduled = false
  #startedAt = Number.NEGATIVE_INFINITY
  #size = 0
  #closed = false
  #up = true
  #probe: NodeJS.Timeout | undefined
  #gatherer: Gatherer | undefined
  readonly #undo: (() => void)[] = []

  constructor(database: DatabaseSync, options: GroupOptions) {
    this.#database = database
    this.#options = options
    this.#beginStatement = database.prepare("BEGIN IMMEDIATE")
    this.#commitStatement = database.prepare("COMMIT")
  }

  get up(): boolean {
    return this.#up && !this.#closed
  }

  gather(gatherer: Gatherer): void {
    this.#gatherer = gatherer
  }

  /** Inside a write: how to take back a change of memory when the write is rolled back. */
  undo(change: () => void): void {
    this.#undo.push(change)
  }

  write<T>(run: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(storeUnavailable(new Error("The store is closed")))
      this.#queue.push({ run, resolve: resolve as (value: unknown) => void, reject })
      if (!this.#scheduled) this.#schedule()
    })
  }

  /** Commits what waits, then refuses. */
  close(): void {
    this.#flush()
    this.#closed = true
    clearTimeout(this.#probe)
  }

  #schedule(): void {
    this.#scheduled = true
    const spaced = this.#options.fsync && this.#size >= crowd
    const wait = spaced ? this.#startedAt + spacingMs - performance.now() : 0
    // A timer is never shorter than 1 ms, so a group that is nearly due goes now.
    if (wait >= 1) setTimeout(this.#flush, Math.floor(wait))
    else setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    this.#scheduled = false
    const writes = this.#queue
    if (writes.length === 0) return
    this.#queue = []
    this.#size = writes.length
    this.#startedAt = performance.now()
    const failure = this.#commit(writes)
    this.#options.observe?.("commit", (performance.now() - this.#startedAt) / 1_000, failure !== undefined)
    this.#state(failure)
  }

  /** The failure of the group as a whole, if it failed. */
  #commit(writes: readonly Write[]): unknown {
    try {
      settle(writes, this.#together(writes) ?? this.#apart(writes))
      return undefined
    } catch (cause) {
      this.#rollback()
      for (const { reject } of writes) reject(storeUnavailable(cause))
      return cause
    }
  }

  /** All in one go; `undefined` when one of them failed: a savepoint per write would cost every group for that. */
  #together(writes: readonly Write[]): readonly Ended[] | undefined {
    this.#begin()
    const ended: Ended[] = []
    try {
      for (const { run } of writes) ended.push({ value: run() })
      this.#gatherer?.finish()
    } catch {
      this.#rollback()
      return undefined
    }
    this.#end()
    return ended
  }

  /** Each under its own savepoint, so that the one that fails is rejected alone. */
  #apart(writes: readonly Write[]): readonly Ended[] {
    this.#begin()
    const ended = writes.map(({ run }) => this.#alone(run))
    this.#end()
    return ended
  }

  #alone(run: () => unknown): Ended {
    const before = this.#undo.length
    this.#database.exec("SAVEPOINT one")
    try {
      const value = run()
      this.#gatherer?.finish()
      this.#database.exec("RELEASE one")
      return { value }
    } catch (error) {
      if (!this.#database.isTransaction) throw error // the disk is full or broken: SQLite gave up the whole transaction
      this.#database.exec("ROLLBACK TO one; RELEASE one")
      this.#takeBack(before)
      this.#gatherer?.forget()
      return { error: error instanceof RangeError ? error : storeUnavailable(error) }
    }
  }

  #begin(): void {
    this.#beginStatement.run()
    this.#gatherer?.begun()
  }

  #end(): void {
    this.#commitStatement.run()
    this.#undo.length = 0
  }

  #rollback(): void {
    if (this.#database.isTransaction) this.#database.exec("ROLLBACK")
    this.#takeBack(0)
    this.#gatherer?.forget()
  }

  #takeBack(from: number): void {
    for (const change of this.#undo.splice(from).reverse()) change()
  }

  #state(failure: unknown): void {
    const up = failure === undefined
    if (up === this.#up) return
    this.#up = up
    // One wait for a locked file is worth it; every write waiting again would stop the event loop for its time.
    this.#database.exec(`PRAGMA busy_timeout = ${up ? busyMs : 0}`)
    this.#options.onState(up, failure)
    if (!up) this.#tryAgain()
  }

  /** Nobody may write while the gateway is not ready, so it tries by itself. */
  #tryAgain(): void {
    if (this.#closed) return
    this.#probe = setTimeout(() => {
      this.write(() => this.#database.exec("UPDATE health SET beat = beat + 1")).catch(() => this.#tryAgain())
    }, probeEveryMs)
    this.#probe.unref()
  }
}

const settle = (writes: readonly Write[], ended: readonly Ended[]): void => {
  for (const [at, one] of ended.entries()) {
    const { resolve, reject } = writes[at]!
    if ("error" in one) reject(one.error)
    else resolve(one.value)
  }
}
