/** Small records with expiry in the embedded store. */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { storeUnavailable } from "../failure.ts"
import type { Records } from "../store.ts"
import type { Groups } from "./groups.ts"

/** So many expired records leave with each write: what was written once is cleared away by what is written later. */
const clearedPerWrite = 4

export class SqliteRecords implements Records {
  readonly #groups: Groups
  readonly #now: () => number
  readonly #put: StatementSync
  readonly #get: StatementSync
  readonly #remove: StatementSync
  readonly #clear: StatementSync

  constructor(database: DatabaseSync, groups: Groups, now: () => number) {
    this.#groups = groups
    this.#now = now
    this.#put = database.prepare("INSERT OR REPLACE INTO records VALUES (?, ?, ?)")
    this.#get = database.prepare("SELECT value FROM records WHERE key = ? AND expires_at > ?")
    this.#remove = database.prepare("DELETE FROM records WHERE key = ?")
    this.#clear = database.prepare(
      `DELETE FROM records WHERE key IN (SELECT key FROM records WHERE expires_at <= ? LIMIT ${clearedPerWrite})`,
    )
  }

  put(key: string, value: string, ttlMs: number): Promise<void> {
    return this.#groups.write(() => this.#write(key, value, ttlMs))
  }

  async get(key: string): Promise<string | undefined> {
    try {
      return this.#read(key)
    } catch (cause) {
      throw storeUnavailable(cause)
    }
  }

  swap(key: string, from: string | undefined, to: string, ttlMs: number): Promise<boolean> {
    return this.#groups.write(() => {
      if (this.#read(key) !== from) return false
      this.#write(key, to, ttlMs)
      return true
    })
  }

  take(key: string): Promise<string | undefined> {
    return this.#groups.write(() => {
      const value = this.#read(key)
      if (value !== undefined) this.#remove.run(key)
      return value
    })
  }

  #read(key: string): string | undefined {
    return (this.#get.get(key, this.#now()) as { readonly value: string } | undefined)?.value
  }

  #write(key: string, value: string, ttlMs: number): void {
    const now = this.#now()
    this.#clear.run(now)
    this.#put.run(key, value, Math.ceil(now + ttlMs))
  }
}
