/** The embedded store: one machine, one gateway, one file. */

import { SqliteAccounts } from "./sqlite/accounts.ts"
import { type Durability, type OpenOptions, openDatabase, own } from "./sqlite/database.ts"
import { SqliteDirectory } from "./sqlite/directory.ts"
import { Freshness } from "./sqlite/freshness.ts"
import { Groups } from "./sqlite/groups.ts"
import { SqliteRecords } from "./sqlite/records.ts"
import { SqliteUsage } from "./sqlite/usage.ts"
import type { Store, StoreOptions } from "./store.ts"
import { MemoryWindows } from "./windows.ts"

export interface SqliteOptions extends StoreOptions {
  /** A file (made when there is none), or `:memory:`. */
  readonly path: string
  /** `power`: a confirmed write survives a power cut (fsync per group). `process`: it survives `kill -9`. */
  readonly durability: Durability
  /** False: writes beside the gateway that owns the file (command line); it sees no holds. */
  readonly owner?: boolean
}

/** @throws Error when another gateway owns the file, or when it cannot be opened */
export const openSqlite = async (options: SqliteOptions): Promise<Store> => {
  const { path, durability, owner = true, now, steady = now, onState = () => {}, observe } = options
  const disown = owner ? own(path) : () => {}
  const database = opened(path, { durability, isOwner: owner }, disown)
  const groups = new Groups(database, {
    fsync: durability === "power" && path !== ":memory:",
    onState,
    ...(observe && { observe }),
  })
  const freshness = new Freshness(database)
  const windows = new MemoryWindows(steady)
  let open = true
  return {
    kind: "sqlite",
    directory: new SqliteDirectory(database, groups, freshness),
    accounts: new SqliteAccounts(database, groups, freshness, windows, { ...options, steady }),
    windows,
    records: new SqliteRecords(database, groups, now),
    usage: new SqliteUsage(database),
    ready: () => groups.up,
    async close() {
      if (!open) return
      open = false
      groups.close()
      database.close()
      disown()
    },
  }
}

const opened = (path: string, options: OpenOptions, disown: () => void) => {
  try {
    return openDatabase(path, options)
  } catch (error) {
    disown()
    throw error
  }
}
