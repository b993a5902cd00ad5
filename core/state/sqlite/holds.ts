/** Open holds in memory: when the process dies, its calls died too. */

import { memberKey, memberOf } from "../member.ts"
import type { MemberRef } from "../store.ts"

export interface OpenHold {
  readonly id: string
  readonly micros: number
  expiresAt: number
}

interface MemberHolds {
  total: number
  readonly open: Map<string, OpenHold>
}

export class Holds {
  readonly #members = new Map<string, MemberHolds>()

  total(member: MemberRef): number {
    return this.#members.get(memberKey(member))?.total ?? 0
  }

  find(member: MemberRef, id: string): OpenHold | undefined {
    return this.#members.get(memberKey(member))?.open.get(id)
  }

  of(member: MemberRef): Iterable<OpenHold> {
    return this.#members.get(memberKey(member))?.open.values() ?? []
  }

  add(member: MemberRef, hold: OpenHold): void {
    const key = memberKey(member)
    const holds = this.#members.get(key) ?? { total: 0, open: new Map<string, OpenHold>() }
    if (holds.open.size === 0) this.#members.set(key, holds)
    holds.open.set(hold.id, hold)
    holds.total += hold.micros
  }

  /** The hold that ended, `undefined` when it had before. */
  end(member: MemberRef, id: string): OpenHold | undefined {
    const key = memberKey(member)
    const holds = this.#members.get(key)
    const hold = holds?.open.get(id)
    if (holds === undefined || hold === undefined) return undefined
    holds.open.delete(id)
    holds.total -= hold.micros
    if (holds.open.size === 0) this.#members.delete(key)
    return hold
  }

  /** Holds past their time. */
  overdue(now: number): readonly { readonly member: MemberRef; readonly id: string }[] {
    const found: { member: MemberRef; id: string }[] = []
    for (const [key, { open }] of this.#members) {
      for (const { id, expiresAt } of open.values()) if (expiresAt <= now) found.push({ member: memberOf(key), id })
    }
    return found
  }
}
