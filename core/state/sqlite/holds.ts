/** Open holds in memory: when the process dies, its calls died too. */

import { memberKey, memberOf } from "../member.ts"
import type { MemberRef } from "../store.ts"

export interface OpenHold {
  readonly id: string
  readonly micros: number
  expiresAt: number
}

/** Of one member: mostly none or one, so that a list finds it sooner than a table. */
interface MemberHolds {
  total: number
  readonly open: OpenHold[]
}

const none: readonly OpenHold[] = []

export class Holds {
  /** A member stays until the next `sweep`: a table that changes with every call costs the garbage collector (`Roster`). */
  readonly #members = new Map<string, MemberHolds>()

  total(member: MemberRef): number {
    return this.#members.get(memberKey(member))?.total ?? 0
  }

  find(member: MemberRef, id: string): OpenHold | undefined {
    return this.of(member).find(hold => hold.id === id)
  }

  of(member: MemberRef): readonly OpenHold[] {
    return this.#members.get(memberKey(member))?.open ?? none
  }

  add(member: MemberRef, hold: OpenHold): void {
    const key = memberKey(member)
    let holds = this.#members.get(key)
    if (holds === undefined) {
      holds = { total: 0, open: [] }
      this.#members.set(key, holds)
    }
    holds.open.push(hold)
    holds.total += hold.micros
  }

  /** The hold that ended, `undefined` when it had before. */
  end(member: MemberRef, id: string): OpenHold | undefined {
    const holds = this.#members.get(memberKey(member))
    if (holds === undefined) return undefined
    const at = holds.open.findIndex(hold => hold.id === id)
    if (at === -1) return undefined
    const hold = holds.open[at] as OpenHold
    const last = holds.open.pop() as OpenHold
    if (last !== hold) holds.open[at] = last
    holds.total -= hold.micros
    return hold
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
