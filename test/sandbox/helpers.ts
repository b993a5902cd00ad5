/** What the tests of the sandbox share. */

import type { Test } from "tap"
import { type Sandbox, startSandbox } from "../../plugins/sandbox/index.ts"

/** A sandbox without pauses, closed at the end of the test. */
export const openSandbox = async (t: Test): Promise<Sandbox> => {
  const sandbox = await startSandbox({ pauseMs: 0 })
  t.teardown(() => sandbox.close())
  return sandbox
}

export const collect = async <T>(items: AsyncIterable<T>): Promise<readonly T[]> => {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** What a call was rejected with; `undefined` when it was not. */
export const refusalOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    error => error,
  )
