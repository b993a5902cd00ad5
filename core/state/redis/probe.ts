/** What shows that a connected Redis serves: it takes writes, and it is the one that was served from before. */

import { randomUUID } from "node:crypto"
import { scripts } from "./scripts.ts"
import type { Word } from "./wire.ts"

/** One question, and what is wrong with its answer. */
export interface Probe {
  readonly name: string
  readonly words: readonly Word[]
  refusal(reply: unknown): Error | undefined
}

/** For who only looks, beside the gateways: a replica will do. */
export const answers: Probe = { name: "PING", words: [], refusal: () => undefined }

/**
 * A Redis that is full, read-only or paused answers reads, and no call can be charged. One that came back without its
 * data knows no key: its clients would be told that theirs are invalid. So each store has a name of its own, which a
 * gateway learns once, and no fresh name is ever the one that it learned.
 */
export const serves = (key: string): Probe => {
  let known: unknown
  return {
    name: "EVAL",
    get words() {
      return [scripts.name.source, 1, key, randomUUID()]
    },
    refusal(name) {
      known ??= name
      return name === known ? undefined : new Error(lost)
    },
  }
}

const lost =
  "Redis came back without its data, or is another one: bring the data back, or restart the gateway to begin anew"
