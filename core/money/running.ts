/** The open holds of this process: renewed together, on one timer, while the sweeper releases those of dead processes. */

import type { Clock, Log } from "../plugin.ts"
import type { MemberRef, Store } from "../state/store.ts"
import type { MoneyMeters } from "./meters.ts"

export interface RunningHold {
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
  /** The oldest first. */
  readonly #holds = new Map<string, RunningHold>()
  #cancel: () => void
  #busy = false

  constructor(options: RunningOptions) {
    this.#options = options
    this.#cancel = this.#arm()
  }

  get size(): number {
    return this.#holds.size
  }

  add(hold: RunningHold): void {
    this.#holds.set(hold.id, hold)
    this.#options.meters.holds.set(this.#holds.size)
  }

  remove(hold: RunningHold): void {
    if (this.#holds.get(hold.id) === hold) this.#holds.delete(hold.id)
    this.#options.meters.holds.set(this.#holds.size)
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
    const oldest = this.#holds.values().next().value
    meters.oldest.set(oldest === undefined ? 0 : (clock.now() - oldest.since) / 1_000)
    try {
      await this.#renew()
      meters.lapsed.add(await store.accounts.sweep())
    } catch (error) {
      log.debug({ err: error }, "holds were not renewed or swept; the next beat tries again")
    } finally {
      this.#busy = false
    }
  }

  async #renew(): Promise<void> {
    const all = [...this.#holds.values()]
    for (let from = 0; from < all.length; from += renewedAtOnce) {
      const some = all.slice(from, from + renewedAtOnce)
      const alive = new Set(await this.#options.store.accounts.renew(some))
      for (const hold of some) if (!alive.has(hold.id) && this.#holds.get(hold.id) === hold) this.#lost(hold)
    }
  }

  /** Its call goes on: settling charges from what is available then. */
  #lost(hold: RunningHold): void {
    this.#options.log.warn({ id: hold.id }, "a hold lapsed while its call was running")
    this.remove(hold)
  }
}
