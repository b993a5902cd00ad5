/** Open holds in memory: when the process dies, its calls died too. */

import { type Listed, Roster } from "../../kit/roster.ts"
import { memberKey, memberOf } from "../member.ts"
import type { MemberRef } from "../store.ts"

export interface OpenHold extends Listed {
  readonly id: string
  readonly micros: number
  expiresAt: number
}

/** So many holds are looked through; more of one member get a table. */
const crowd = 16

/** So many settled calls of one member are remembered, until a sweep finds the member idle: a late repeat comes at once. */
const remembered = 16

/** The open holds of one member: mostly none or one, which a glance finds sooner than a table. */
export class MemberHolds {
  readonly #open = new Roster<OpenHold>()
  #byId: Map<string, OpenHold> | undefined
  readonly #settled: string[] = []
  #nextSettled = 0
  total = 0

  get open(): Iterable<OpenHold> {
    return this.#open
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  find(id: string): OpenHold | undefined {
    return this.#byId === undefined ? this.#open.find(hold => hold.id === id) : this.#byId.get(id)
  }

  add(hold: OpenHold): void {
    this.#open.add(hold)
    this.total += hold.micros
    if (this.#open.size > crowd) this.#byId ??= new Map([...this.#open].map(one => [one.id, one]))
    this.#byId?.set(hold.id, hold)
  }

  /** The hold that ended, `undefined` when it had before. */
  end(id: string): OpenHold | undefined {
    const hold = this.find(id)
    if (hold === undefined) return undefined
    this.#open.delete(hold)
    this.total -= hold.micros
    if (this.isEmpty) this.#byId = undefined
    else this.#byId?.delete(id)
    return hold
  }

  /** Its charge was written, in place of the oldest that is remembered. */
  settle(id: string): void {
    this.#settled[this.#nextSettled] = id
    this.#nextSettled = (this.#nextSettled + 1) % remembered
  }

  /** Its charge was taken back. */
  unsettle(id: string): void {
    const place = this.#settled.indexOf(id)
    if (place >= 0) this.#settled[place] = ""
  }

  isSettled(id: string): boolean {
    return this.#settled.includes(id)
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
    for (const [key, holds] of this.#members) {
      if (holds.isEmpty) this.#members.delete(key)
      for (const { id, expiresAt } of holds.open) if (expiresAt <= now) found.push({ member: memberOf(key), id })
    }
    return found
  }
}
