/** The open holds of this process: renewed together, on one timer, while the sweeper releases those of dead processes. */

import { type Listed, Roster } from "../kit/roster.ts"
import type { Clock, Log } from "../plugin.ts"
import type { MemberRef, Store } from "../state/store.ts"
import type { MoneyMeters } from "./meters.ts"

export interface RunningHold extends Listed {
  readonly id: string
  readonly member: MemberRef
  readonly since: number
}

export interface RunningOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly meters: MoneyMeters
  readonly holdLifeMs: number
}

/** A hold is renewed this often in its life: four beats may fail before it lapses. */
const beatsPerLife = 5
const renewedAtOnce = 500

export class Running {
  readonly #options: RunningOptions
  readonly #holds = new Roster<RunningHold>()
  #cancel = (): void => {}
  #busy = false

  constructor(options: RunningOptions) {
    this.#options = options
    // At once: gateways that die again and again before their first beat would leave what the dead held for ever.
    void this.#beat()
  }

  get size(): number {
    return this.#holds.size
  }

  add(hold: RunningHold): void {
    this.#holds.add(hold)
    this.#options.meters.holds.set(this.#holds.size)
  }

  remove(hold: RunningHold): void {
    const { meters } = this.#options
    this.#holds.delete(hold)
    meters.holds.set(this.#holds.size)
    if (this.#holds.size === 0) meters.oldest.set(0) // the next beat may be a minute away
  }

  stop(): void {
    this.#cancel()
  }

  #arm(): () => void {
    const { clock, holdLifeMs } = this.#options
    return clock.after(holdLifeMs / beatsPerLife, () => void this.#beat())
  }

  async #beat(): Promise<void> {
    this.#cancel = this.#arm()
    if (this.#busy) return // the store is slow: what is under way comes first
    this.#busy = true
    const { clock, log, meters, store } = this.#options
    meters.oldest.set(this.#oldestMs(clock.steady()) / 1_000)
    try {
      await this.#renew()
      meters.lapsed.add(await store.accounts.sweep())
    } catch (error) {
      log.debug({ err: error }, "holds were not renewed or swept; the next beat tries again")
    } finally {
      this.#busy = false
    }
  }

  #oldestMs(now: number): number {
    let oldest = now
    for (const { since } of this.#holds) oldest = Math.min(oldest, since)
    return now - oldest
  }

  async #renew(): Promise<void> {
    const all = [...this.#holds]
    for (let from = 0; from < all.length; from += renewedAtOnce) {
      const some = all.slice(from, from + renewedAtOnce)
      const alive = new Set(await this.#options.store.accounts.renew(some))
      for (const hold of some) if (!alive.has(hold.id) && this.#holds.has(hold)) this.#lost(hold)
    }
  }

  /** Its call goes on: settling charges from what is available then. */
  #lost(hold: RunningHold): void {
    this.#options.log.warn({ id: hold.id }, "a hold lapsed while its call was running")
    this.remove(hold)
  }
}
