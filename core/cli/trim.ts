/**
 * Reading YAML and compiling schemas leave a heap three times as large as what stays. V8 would keep it for hours in a
 * quiet process: one full collection after the start takes 144 MB of resident memory down to 105 (shipped catalog).
 */

import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void

/** Takes some 50 ms: call it when the process is ready, before its first call. */
export const giveBackMemory = (): void => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as Collect
  setFlagsFromString("--no-expose-gc")
  collect({ type: "major", execution: "sync", flavor: "last-resort" })
}
