/**
 * Finds the holds of calls whose gateway died. A member is announced in one of 16 sets before its holds, by a command of
 * its own, since the sets lie on other nodes than the member; harmless when the hold then fails.
 */

import { memberKey, memberOf } from "../member.ts"
import type { MemberRef } from "../store.ts"
import { type Keys, sweepSets } from "./keys.ts"
import type { Link } from "./link.ts"
import { scripts } from "./scripts.ts"

export interface SweeperOptions {
  readonly now: () => number
  readonly steady: () => number
  readonly time: () => string
  readonly holdLifeMs: number
}

const lapsesPerScript = 100
const membersAtOnce = 32

/** The wall's clock may be set back, the steady one stands still while the machine sleeps: the first to end counts. */
interface Announced {
  readonly until: number
  readonly steadyUntil: number
}

export class Sweeper {
  readonly #link: Link
  readonly #keys: Keys
  readonly #options: SweeperOptions
  /** Until when this process need not announce a member again, by both its clocks. */
  readonly #announced = new Map<string, Announced>()

  constructor(link: Link, keys: Keys, options: SweeperOptions) {
    this.#link = link
    this.#keys = keys
    this.#options = options
  }

  knows(member: MemberRef): boolean {
    const announced = this.#announced.get(memberKey(member))
    return announced !== undefined && this.#lasts(announced)
  }

  /** Good for one hold life here, for three in the set: holds made until then, and clocks that differ, are covered. */
  async announce(member: MemberRef): Promise<void> {
    const { now, steady, holdLifeMs } = this.#options
    const [at, steadyAt] = [now(), steady()]
    const key = memberKey(member)
    await this.#link.command("ZADD", this.#keys.sweepOf(member), "GT", at + 3 * holdLifeMs, key)
    this.#announced.set(key, { until: at + holdLifeMs, steadyUntil: steadyAt + holdLifeMs })
  }

  async sweep(): Promise<number> {
    const now = this.#options.now()
    for (const [key, announced] of this.#announced) if (!this.#lasts(announced)) this.#announced.delete(key)
    let lapsed = 0
    for (let set = 0; set < sweepSets; set += 1) lapsed += await this.#sweepSet(this.#keys.sweep(set), now)
    return lapsed
  }

  #lasts({ until, steadyUntil }: Announced): boolean {
    return until > this.#options.now() && steadyUntil > this.#options.steady()
  }

  async #sweepSet(set: string, now: number): Promise<number> {
    const members = (await this.#link.command("ZRANGE", set, 0, -1)) as readonly string[]
    let lapsed = 0
    for (let from = 0; from < members.length; from += membersAtOnce) {
      const some = members.slice(from, from + membersAtOnce)
      const counts = await Promise.all(some.map(key => this.#sweepMember(set, key, now)))
      for (const count of counts) lapsed += count
    }
    return lapsed
  }

  async #sweepMember(set: string, key: string, now: number): Promise<number> {
    const { account, holds, lives, entries, ids } = this.#keys.member(memberOf(key))
    const time = this.#options.time()
    let total = 0
    for (;;) {
      const reply = await this.#link.script(scripts.lapse, [account, holds, lives, entries, ids], time, lapsesPerScript)
      const [lapsed, left] = reply as [number, number]
      total += lapsed
      if (lapsed === lapsesPerScript) continue
      if (left === 0) await this.#link.script(scripts.forget, [set], key, now)
      return total
    }
  }
}
