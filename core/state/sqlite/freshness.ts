/**
 * Whether what was read before is still what the file says.
 *
 * One gateway owns the file, so its memory of a row goes wrong in one way only: another connection (the command line
 * tool) commits. SQLite counts exactly that: `PRAGMA data_version` differs between two calls on one connection if and
 * only if another connection committed in between. So a row that this connection read or wrote is as good as read now
 * while the number stands. The number is asked for once per turn of the event loop before anything is served from
 * memory, and again inside each transaction of our own, where nobody else can write: a change made beside the gateway
 * is seen by the next turn, as by a read, and no balance is ever written on top of one that it did not know.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite"

export class Freshness {
  readonly #version: StatementSync
  readonly #forget: (() => void)[] = []
  #known = Number.NaN
  #checked = false

  constructor(database: DatabaseSync) {
    this.#version = database.prepare("PRAGMA data_version")
  }

  /** `forget` is called when what was remembered of the file may be wrong. */
  onStale(forget: () => void): void {
    this.#forget.push(forget)
  }

  /** Before a read: at most one question per turn. */
  check(): void {
    if (this.#checked) return
    this.checkNow()
    this.#checked = true
    setImmediate(this.#turned)
  }

  /** Inside a transaction: what holds from here to its end. */
  checkNow(): void {
    const { data_version: version } = this.#version.get() as { readonly data_version: number }
    if (version === this.#known) return
    for (const forget of this.#forget) forget()
    this.#known = version
  }

  readonly #turned = (): void => {
    this.#checked = false
  }
}
