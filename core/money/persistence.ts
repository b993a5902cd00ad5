/**
 * Work that must not be lost when the store is away: tried until it succeeds, on one coarse timer for all of it. Whoever
 * waits for the result waits a bounded time; the work goes on without them.
 */

import { isGatewayError } from "../errors.ts"
import { type Listed, Roster } from "../kit/roster.ts"
import type { Clock, Log } from "../plugin.ts"
import type { ChargeDetail, MemberRef } from "../state/store.ts"

/** How long a caller waits before it is told that the work goes on in the background. */
export const patienceMs = 2_000
const tickMs = 100
const firstRetryMs = 100
const lastRetryMs = 5_000
/** A wait at the end that takes longer than this is told. */
const toldAfterMs = 1_000

/** What is to be written, in the words in which an operator may have to do it by hand. */
export interface Pending extends MemberRef {
  readonly unconfirmed: "charge" | "release"
  readonly id: string
  /** To be charged, or given back. */
  readonly micros: number
  /** What the row of a charge will say. */
  readonly detail?: ChargeDetail
}

interface Job extends Listed {
  readonly what: Pending
  readonly work: () => Promise<unknown>
  readonly resolve: (value: unknown) => void
  readonly over: () => void
  readonly giveUpAt: number
  retryAt: number
  retryMs: number
}

export class Persistence {
  readonly #clock: Clock
  readonly #log: Log
  readonly #jobs = new Roster<Job>()
  #cancel: (() => void) | undefined
  #idle: (() => void)[] = []

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  get size(): number {
    return this.#jobs.size
  }

  get pending(): readonly Pending[] {
    return [...this.#jobs].map(({ what }) => what)
  }

  /**
   * Tries until it succeeds, or fails for another reason than an absent store (that is logged, and never repeated).
   *
   * @param over it is done, or will never be
   * @returns what it gave, or `undefined` when that took longer than the patience, or will never come
   */
  keep<T>(what: Pending, work: () => Promise<T>, over = (): void => {}): Promise<T | undefined> {
    return new Promise<T | undefined>(resolve => {
      const giveUpAt = this.#clock.steady() + patienceMs
      const job: Job = {
        what,
        work,
        resolve: resolve as (value: unknown) => void,
        over,
        giveUpAt,
        retryAt: Number.POSITIVE_INFINITY,
        retryMs: firstRetryMs,
      }
      this.#jobs.add(job)
      this.#cancel ??= this.#clock.after(tickMs, () => this.#tick())
      void this.#run(job)
    })
  }

  /**
   * Resolves when nothing is left to do, or when the time is over; then nothing is tried any more.
   *
   * @returns what is left
   */
  async end(withinMs: number): Promise<readonly Pending[]> {
    this.#hurry()
    if (this.#jobs.size > 0) await this.#emptied(withinMs)
    this.#cancel?.()
    this.#cancel = undefined
    const left = this.pending
    this.#jobs.clear()
    return left
  }

  /** Whoever waits for the end does not wait for the next of rare tries. */
  #hurry(): void {
    for (const job of this.#jobs) {
      job.retryMs = firstRetryMs
      if (job.retryAt !== Number.POSITIVE_INFINITY) job.retryAt = this.#clock.steady()
    }
  }

  async #emptied(withinMs: number): Promise<void> {
    const untold = this.#clock.after(toldAfterMs, () => this.#tell(withinMs))
    await new Promise<void>(resolve => {
      const inTime = this.#clock.after(withinMs, resolve)
      this.#idle.push(() => {
        inTime()
        resolve()
      })
    })
    untold()
  }

  #tell(withinMs: number): void {
    const charges = [...this.#jobs].filter(({ what }) => what.unconfirmed === "charge").length
    const releases = this.#jobs.size - charges
    this.#log.warn({ charges, releases, withinMs }, "waiting for the store, which has not taken these yet")
  }

  async #run(job: Job): Promise<void> {
    job.retryAt = Number.POSITIVE_INFINITY
    try {
      this.#finish(job, await job.work())
    } catch (error) {
      this.#failed(job, error)
    }
  }

  #failed(job: Job, error: unknown): void {
    if (isGatewayError(error) && error.code === "store_unavailable") {
      job.retryAt = this.#clock.steady() + job.retryMs
      job.retryMs = Math.min(2 * job.retryMs, lastRetryMs)
      return
    }
    this.#log.error({ ...job.what, err: error }, "a charge or release failed for good: it is not tried again")
    this.#finish(job, undefined)
  }

  #finish(job: Job, value: unknown): void {
    job.over()
    job.resolve(value)
    this.#jobs.delete(job)
    if (this.#jobs.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #tick(): void {
    this.#cancel = this.#jobs.size > 0 ? this.#clock.after(tickMs, () => this.#tick()) : undefined
    const now = this.#clock.steady()
    for (const job of this.#jobs) {
      if (job.giveUpAt <= now) job.resolve(undefined)
      if (job.retryAt <= now) void this.#run(job)
    }
  }
}
