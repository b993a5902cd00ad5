/** Absolute deadlines of many calls on one coarse timer: arming a timer per call would cost more than the call's log line. */

import { type Listed, Roster } from "../kit/roster.ts"
import type { Clock } from "../plugin.ts"

export interface Watched extends Listed {
  /** In milliseconds of the steady clock; `Infinity` = none for now. Read at each scan, so it may change at any time. */
  readonly deadline: number
  /** Called once, at the first scan at or after the deadline; the item is no longer watched then. */
  expire(now: number): void
}

/** A timer that comes later than this tells of a long turn. */
const longTurnMs = 5

/**
 * Scans its items every `everyMs`, and only while it has some: an expiry comes up to `everyMs` late, never early. After a
 * long turn of ours, or a stop of the process, what others sent meanwhile is read before anybody is judged.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #items = new Roster<Watched>()
  #cancel: (() => void) | undefined

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock
    this.#everyMs = everyMs
  }

  watch(item: Watched): void {
    this.#items.add(item)
    if (this.#cancel === undefined) this.#arm()
  }

  /** Ends the watch; again, or after the expiry, it does nothing. */
  unwatch(item: Watched): void {
    this.#items.delete(item)
  }

  /** Forgets all items and the timer. */
  stop(): void {
    this.#items.clear()
    this.#cancel?.()
    this.#cancel = undefined
  }

  #arm(): void {
    const dueAt = this.#clock.steady() + this.#everyMs
    this.#cancel = this.#clock.after(this.#everyMs, () => this.#wake(dueAt))
  }

  #wake(dueAt: number): void {
    if (this.#clock.steady() - dueAt < longTurnMs) return this.#scan()
    const read = setImmediate(() => this.#scan()) // timers come before sockets, immediates after them
    this.#cancel = () => clearImmediate(read)
  }

  #scan(): void {
    // Armed again before the expiries, so that one that throws does not end the watch over the others.
    if (this.#items.size === 0) this.#cancel = undefined
    else this.#arm()
    const now = this.#clock.steady()
    for (const item of this.#items) {
      if (now < item.deadline) continue
      this.#items.delete(item)
      item.expire(now)
    }
  }
}
