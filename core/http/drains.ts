/** Vendor calls that are read on after their client left, for their usage: bounded in number, time and bytes. */

import type { Clock } from "../plugin.ts"

export interface DrainLimits {
  readonly count: number
  readonly timeMs: number
  readonly bytes: number
}

export interface Drains {
  readonly bytesMax: number
  readonly open: number
  /** Takes a place; `undefined` when there is none. `late` is called when a stream's time is over. Call the answer once at the end. */
  begin(streamed: boolean, late: () => void): (() => void) | undefined
  /** Resolves when no drain is open. */
  idle(): Promise<void>
  /** Ends all of them now (shutdown). */
  cancelAll(): void
}

export const createDrains = (limits: DrainLimits, clock: Clock): Drains => {
  const open = new Set<() => void>()
  let waiting: (() => void)[] = []
  return {
    bytesMax: limits.bytes,
    get open() {
      return open.size
    },
    begin(streamed, late) {
      if (open.size >= limits.count) return undefined
      // A whole answer is waited for as long as its vendor may take: the upstream's own deadlines end it.
      const cancelTimer = streamed ? clock.after(limits.timeMs, late) : undefined
      open.add(late)
      return () => {
        cancelTimer?.()
        open.delete(late)
        if (open.size > 0) return
        for (const resolve of waiting) resolve()
        waiting = []
      }
    },
    idle: () => (open.size === 0 ? Promise.resolve() : new Promise(resolve => waiting.push(resolve))),
    cancelAll: () => {
      for (const late of [...open]) late()
    },
  }
}
