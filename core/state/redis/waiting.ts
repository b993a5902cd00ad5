/** One deadline for many commands on one timer: all wait equally long, so the oldest is always the next to expire. */

/** A timer that comes so late was held up by the process itself, and so was whoever waits: that time does not count. */
const heldUpMs = 20

/** One that waits; a link of the chain of all that do. */
export abstract class Waiter {
  dueAt = 0
  before: Waiter | undefined
  after: Waiter | undefined

  abstract expire(): void
}

export class Waiting {
  readonly #deadlineMs: number
  #oldest: Waiter | undefined
  #newest: Waiter | undefined
  #timer: NodeJS.Timeout | undefined

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
    const wakeAt = performance.now() + ms
    this.#timer = setTimeout(() => {
      const lateMs = performance.now() - wakeAt
      if (lateMs < heldUpMs) this.#scan()
      else this.#arm(Math.min(lateMs, this.#deadlineMs))
    }, Math.ceil(ms))
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
