/** What shows that a connected Redis serves: it takes writes, and it is the one that was served from before. */

import { randomUUID } from "node:crypto"
import { scripts } from "./scripts.ts"
import type { Word } from "./wire.ts"

/** One question, and what is wrong with its answer; asked again after what makes it doubtful. */
export interface Probe {
  readonly name: string
  readonly words: readonly Word[]
  refusal(reply: unknown): Error | undefined
  /** Errors by which all is refused, whatever was asked. */
  readonly refusesAll: RegExp
  /** A command without an answer in time speaks for all others. */
  readonly oneServer: boolean
}

const serverRefuses = /^(READONLY|OOM|MISCONF|NOREPLICAS|MASTERDOWN|LOADING|BUSY|NOAUTH) /

/** For who only looks, beside the gateways: a replica will do. */
export const answers: Probe = {
  name: "PING",
  words: [],
  refusal: () => undefined,
  refusesAll: serverRefuses,
  oneServer: true,
}

/** One node says nothing about others; but each knows when all of them refuse. */
export const clusterServes: Probe = {
  name: "CLUSTER",
  words: ["INFO"],
  refusal: reply => (/^cluster_state:ok/m.test(String(reply)) ? undefined : new Error("The Redis Cluster is down")),
  refusesAll: /CLUSTERDOWN The cluster is down/,
  oneServer: false,
}

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
    refusesAll: serverRefuses,
    oneServer: true,
  }
}

const lost =
  "Redis came back without its data, or is another one: bring the data back, or restart the gateway to begin anew"
