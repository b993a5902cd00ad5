/** Time as something that is given: the system's for the product, a stepped one for tests. */

import { timerMaxMs } from "../kit/units.ts"
import type { Clock } from "../plugin.ts"

const after = (ms: number, run: () => void): (() => void) => {
  let timer: NodeJS.Timeout
  const arm = (left: number): void => {
    timer = setTimeout(() => (left > timerMaxMs ? arm(left - timerMaxMs) : run()), Math.min(left, timerMaxMs))
    timer.unref()
  }
  arm(ms)
  return () => clearTimeout(timer)
}

export const systemClock: Clock = { now: () => Date.now(), steady: () => performance.now(), after }

export interface TestClock extends Clock {
  /**
   * Moves time forward by `ms` and runs what falls due on the way, in order of time, then of arming. Pending promises
   * and I/O callbacks get one turn of the event loop before the first and after each of them.
   */
  advance(ms: number): Promise<void>
  /** Sets the wall's clock by so much, forwards or back; no time passes. */
  set(byMs: number): void
}

interface Alarm {
  readonly at: number
  readonly run: () => void
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

const earliest = (alarms: Iterable<Alarm>, until: number): Alarm | undefined => {
  let first: Alarm | undefined
  for (const alarm of alarms) if (alarm.at <= until && (first === undefined || alarm.at < first.at)) first = alarm
  return first
}

/** A clock that stands still until it is moved. `start` is in Unix milliseconds; the default is an arbitrary date. */
export const testClock = (start: number = Date.UTC(2026, 0, 1)): TestClock => {
  const alarms = new Set<Alarm>() // in order of arming
  let now = start
  let wrongBy = 0
  return {
    now: () => now + wrongBy,
    steady: () => now,
    set(byMs) {
      wrongBy += byMs
    },
    after(ms, run) {
      const alarm = { at: now + Math.max(0, ms), run }
      alarms.add(alarm)
      return () => void alarms.delete(alarm)
    },
    async advance(ms) {
      const until = now + ms
      await turn()
      for (let due = earliest(alarms, until); due !== undefined; due = earliest(alarms, until)) {
        alarms.delete(due)
        now = Math.max(now, due.at)
        due.run()
        await turn()
      }
      now = Math.max(now, until)
    },
  }
}
