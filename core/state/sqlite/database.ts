/** Opens the file of the embedded store, and makes sure that one gateway owns it. */

import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { schema, schemaVersion } from "./schema.ts"

/** How long a write may wait for the command line tool that writes beside the gateway. */
export const busyMs = 1_000

export type Durability = "power" | "process"

export const openDatabase = (path: string, durability: Durability): DatabaseSync => {
  if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true })
  const database = new DatabaseSync(path, { timeout: busyMs })
  try {
    prepare(database, path, durability)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

const prepare = (database: DatabaseSync, path: string, durability: Durability): void => {
  database.exec("PRAGMA journal_mode = WAL")
  database.exec(`PRAGMA synchronous = ${durability === "power" ? "FULL" : "NORMAL"}`)
  // A checkpoint costs two fsyncs: after 16 MB, not SQLite's 4, so that it is shared by more groups.
  database.exec("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000")
  database.exec("BEGIN IMMEDIATE")
  const { user_version: version } = database.prepare("PRAGMA user_version").get() as { user_version: number }
  if (version > schemaVersion) throw new Error(`${path} was written by a newer Tollgate (schema ${version})`)
  if (version === 0) database.exec(`${schema}; PRAGMA user_version = ${schemaVersion}`)
  database.exec("COMMIT")
}

/**
 * Holds and windows live in memory, so two gateways on one file would each give away the same credits. The lock is a
 * transaction on a file of its own: it dies with the process, however that ends.
 *
 * @returns what gives the ownership back
 * @throws Error when another gateway owns the file
 */
export const own = (path: string): (() => void) => {
  if (path === ":memory:") return () => {}
  mkdirSync(dirname(path), { recursive: true })
  const lock = new DatabaseSync(`${path}.lock`, { timeout: 0 })
  try {
    lock.exec("BEGIN EXCLUSIVE")
  } catch (cause) {
    lock.close()
    const why = "another gateway is running on it; stop that one, or give this one a store of its own"
    throw new Error(`The store ${path} cannot be opened: ${why}`, { cause })
  }
  return () => lock.close()
}
