/** When the memory of a peak is given back: after a long time with hardly any work, for what was compiled goes with it. */

import type { Clock } from "../plugin.ts"
import { giveBackMemory } from "./engine.ts"

export interface Machine {
  /** The part of the time since it was last asked in which the event loop was at work, 0 to 1. */
  busy(): number
  residentBytes(): number
  giveBack(): void
}

/** A gateway that is asked nothing is at work for less than this part of the time. */
const quietShare = 0.01
/** Less growth is not worth the compiled code. */
const worthwhile = 1.5
const everyMs = 10 * 60_000

/** Looks every ten minutes from now on; what is resident now is what a quiet process needs. */
export const giveBackWhenQuiet = (clock: Clock, machine: Machine = thisProcess()): void => {
  let left = machine.residentBytes()
  const look = (): void => {
    const isQuiet = machine.busy() < quietShare
    if (isQuiet && machine.residentBytes() > left * worthwhile) {
      machine.giveBack()
      left = machine.residentBytes()
    }
    clock.after(everyMs, look)
  }
  clock.after(everyMs, look)
}

const thisProcess = (): Machine => {
  let since = performance.eventLoopUtilization()
  return {
    busy() {
      const { utilization } = performance.eventLoopUtilization(since)
      since = performance.eventLoopUtilization()
      return utilization
    },
    residentBytes: () => process.memoryUsage.rss(),
    giveBack: giveBackMemory,
  }
}
