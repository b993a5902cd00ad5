/** One deadline for many commands on one timer: all wait equally long, so the oldest is always the next to expire. */

/** One that waits; a link of the chain of all that do. */
export abstract class Waiter {
  dueAt = 0
  before: Waiter | undefined
  after: Waiter | undefined

  abstract expire(): void
}

/**
 * A timer that comes later than this says that a turn of ours was long, or that the machine stood still: then what was
 * answered is not read yet, or what was asked has not even left. Nobody is late before there was time for both, unless
 * so many turns in a row were long.
 */
const longTurnMs = 5
const graceMs = 50
const gracesMax = 4

export class Waiting {
  readonly #deadlineMs: number
  #oldest: Waiter | undefined
  #newest: Waiter | undefined
  #timer: NodeJS.Timeout | undefined
  #graces = 0

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
  }

  /** It expires once when the deadline passes, unless `end` comes first. */
  start(waiter: Waiter, now: number): void {
    waiter.dueAt = now + this.#deadlineMs
    waiter.before = this.#newest
    if (this.#newest === undefined) this.#oldest = waiter
    else this.#newest.after = waiter
    this.#newest = waiter
    if (this.#timer === undefined) this.#arm(this.#deadlineMs)
  }

  end(waiter: Waiter): void {
    const { before, after } = waiter
    if (before !== undefined) before.after = after
    else if (this.#oldest === waiter) this.#oldest = after
    if (after !== undefined) after.before = before
    else if (this.#newest === waiter) this.#newest = before
    waiter.before = undefined
    waiter.after = undefined
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #arm(ms: number): void {
    const dueAt = performance.now() + ms
    this.#timer = setTimeout(() => this.#wake(dueAt), Math.ceil(ms))
  }

  #wake(dueAt: number): void {
    const isLong = performance.now() - dueAt >= longTurnMs
    this.#graces = isLong && this.#graces < gracesMax ? this.#graces + 1 : 0
    if (this.#graces > 0) this.#arm(graceMs)
    else this.#scan()
  }

  #scan(): void {
    this.#timer = undefined
    const now = performance.now()
    for (let oldest = this.#oldest; oldest !== undefined; oldest = this.#oldest) {
      if (oldest.dueAt > now) return this.#arm(oldest.dueAt - now)
      this.end(oldest)
      oldest.expire()
    }
  }
}
