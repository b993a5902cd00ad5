/** Vendor calls that are read on after their client left, for their usage: bounded in number, time and bytes. */

import type { Clock } from "../plugin.ts"

export interface DrainLimits {
  readonly count: number
  readonly timeMs: number
  readonly bytes: number
}

/** One place among them. */
export interface Drain {
  /** Bytes came. */
  read(bytes: number): void
  /** Everything is settled: the place is free. */
  end(): void
}

export interface Drains {
  readonly open: number
  /** Takes a place; `undefined` when there is none. `late` is called when its time (of a stream) or its bytes are used up. */
  begin(streamed: boolean, late: () => void): Drain | undefined
  /** Resolves when no drain is open. */
  idle(): Promise<void>
  /** Ends all of them now (shutdown). */
  cancelAll(): void
}

export const createDrains = (limits: () => DrainLimits, clock: Clock): Drains => {
  const open = new Set<() => void>()
  let waiting: (() => void)[] = []
  return {
    get open() {
      return open.size
    },
    begin(streamed, late) {
      const { count, timeMs, bytes } = limits()
      if (open.size >= count) return undefined
      // A whole answer is waited for as long as its vendor may take: the upstream's own deadlines end it.
      const cancelTimer = streamed ? clock.after(timeMs, late) : undefined
      let left = bytes
      open.add(late)
      return {
        read: more => {
          left -= more
          if (left < 0) late()
        },
        end: () => {
          cancelTimer?.()
          open.delete(late)
          if (open.size > 0) return
          for (const resolve of waiting) resolve()
          waiting = []
        },
      }
    },
    idle: () => (open.size === 0 ? Promise.resolve() : new Promise(resolve => waiting.push(resolve))),
    cancelAll: () => {
      for (const late of [...open]) late()
    },
  }
}
