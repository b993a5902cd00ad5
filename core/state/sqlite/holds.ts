/** Open holds in memory: when the process dies, its calls died too. */

import { memberKey, memberOf } from "../member.ts"
import type { MemberRef } from "../store.ts"

export interface OpenHold {
  readonly id: string
  readonly micros: number
  expiresAt: number
}

/** The open holds of one member: mostly none or one, so that a list finds it sooner than a table. */
export class MemberHolds {
  readonly open: OpenHold[] = []
  total = 0

  find(id: string): OpenHold | undefined {
    return this.open.find(hold => hold.id === id)
  }

  add(hold: OpenHold): void {
    this.open.push(hold)
    this.total += hold.micros
  }

  /** The hold that ended, `undefined` when it had before. */
  end(id: string): OpenHold | undefined {
    const at = this.open.findIndex(hold => hold.id === id)
    if (at === -1) return undefined
    const hold = this.open[at] as OpenHold
    const last = this.open.pop() as OpenHold
    if (last !== hold) this.open[at] = last
    this.total -= hold.micros
    return hold
  }
}

export class Holds {
  /** A member stays until the next sweep: a table that changes with every call costs the garbage collector (`Roster`). */
  readonly #members = new Map<string, MemberHolds>()

  /** Good until the event loop turns: a sweep may forget it then. */
  of(member: MemberRef): MemberHolds {
    const key = memberKey(member)
    let holds = this.#members.get(key)
    if (holds === undefined) {
      holds = new MemberHolds()
      this.#members.set(key, holds)
    }
    return holds
  }

  /** Forgets the members without a hold, and tells the holds that are past their time. */
  sweep(now: number): readonly { readonly member: MemberRef; readonly id: string }[] {
    const found: { member: MemberRef; id: string }[] = []
    for (const [key, { open }] of this.#members) {
      if (open.length === 0) this.#members.delete(key)
      for (const { id, expiresAt } of open) if (expiresAt <= now) found.push({ member: memberOf(key), id })
    }
    return found
  }
}
