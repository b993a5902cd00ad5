/** Exact sliding windows in memory: a ring with the times of the last `limit` accepted hits (8 bytes each). */

import { memberKey } from "./member.ts"
import type { MemberRef, WindowAnswer, WindowLimit, Windows } from "./store.ts"

class Window {
  #times: Float64Array
  #head = 0
  #count = 0
  #last = Number.NEGATIVE_INFINITY
  #windowMs: number

  constructor(limit: WindowLimit) {
    this.#times = new Float64Array(limit.requests)
    this.#windowMs = limit.windowMs
  }

  /** @param now milliseconds that never go back */
  hit(now: number, limit: WindowLimit): WindowAnswer {
    if (limit.requests !== this.#times.length) this.#resize(limit.requests)
    this.#windowMs = limit.windowMs
    this.#forget(now)
    const allowed = this.#count < this.#times.length
    if (allowed) this.#push(now)
    return {
      allowed,
      remaining: this.#times.length - this.#count,
      retryAfterMs: allowed ? 0 : this.#left(this.#oldest(), now),
      resetMs: Math.max(0, this.#left(this.#last, now)),
    }
  }

  /** Of the window of a hit. In this order: steady time has fractions, and a sum with them would be a little off. */
  #left(time: number, now: number): number {
    return this.#windowMs - (now - time)
  }

  idle(now: number): boolean {
    return this.#left(this.#last, now) <= 0
  }

  #oldest(): number {
    return this.#count === 0 ? this.#last : this.#times[this.#head]!
  }

  #push(now: number): void {
    this.#times[(this.#head + this.#count) % this.#times.length] = now
    this.#count += 1
    this.#last = now
  }

  #forget(now: number): void {
    while (this.#count > 0 && this.#left(this.#times[this.#head]!, now) <= 0) this.#drop()
  }

  #drop(): void {
    this.#head = (this.#head + 1) % this.#times.length
    this.#count -= 1
  }

  /** A reload changed the limit: the newest hits stay. */
  #resize(limit: number): void {
    while (this.#count > limit) this.#drop()
    const times = new Float64Array(limit)
    for (let at = 0; at < this.#count; at += 1) times[at] = this.#times[(this.#head + at) % this.#times.length]!
    this.#times = times
    this.#head = 0
  }
}

export class MemoryWindows implements Windows {
  readonly #steady: () => number
  readonly #buckets = new Map<string, Map<string, Window>>()

  /** @param steady a clock set forward would open every window, one set back keep it closed */
  constructor(steady: () => number) {
    this.#steady = steady
  }

  async hit(bucket: string, member: MemberRef, limit: WindowLimit): Promise<WindowAnswer> {
    return this.hitNow(bucket, member, limit)
  }

  hitNow(bucket: string, member: MemberRef, limit: WindowLimit): WindowAnswer {
    const windows = this.#buckets.get(bucket) ?? put(this.#buckets, bucket, new Map<string, Window>())
    const key = memberKey(member)
    const window = windows.get(key) ?? put(windows, key, new Window(limit))
    return window.hit(this.#steady(), limit)
  }

  /** Forgets the windows that are wholly free again. */
  sweep(): void {
    const now = this.#steady()
    for (const windows of this.#buckets.values()) {
      for (const [key, window] of windows) if (window.idle(now)) windows.delete(key)
    }
  }
}

const put = <V>(map: Map<string, V>, key: string, value: V): V => {
  map.set(key, value)
  return value
}
