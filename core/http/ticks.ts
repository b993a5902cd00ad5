/**
 * Every byte that comes or goes passes `process.nextTick`, eight times a call. V8 forgets a hidden class that no object
 * has at two full collections in a row, and the ticks of Node live only between two callbacks; once theirs is forgotten,
 * `nextTick` takes V8's slow path for the rest of the process: 0.7 to 1 us instead of 0.1 (Node 24). One tick that never
 * dies keeps the class.
 */

import { executionAsyncResource } from "node:async_hooks"

/** Resolves with the tick that is kept from now on. */
export const keepTick = (): Promise<object> => {
  kept ??= new Promise(resolve => process.nextTick(() => resolve(executionAsyncResource())))
  return kept
}

let kept: Promise<object> | undefined
