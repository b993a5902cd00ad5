/** Opens the file of the embedded store, and makes sure that one gateway owns it. */

import { closeSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { schema, schemaVersion } from "./schema.ts"

/** How long a write may wait for the command line tool that writes beside the gateway. */
export const busyMs = 1_000

export type Durability = "power" | "process"

/** @throws Error naming the file when it cannot be opened, is no store, or was written by a newer Tollgate */
export const openDatabase = (path: string, durability: Durability): DatabaseSync => {
  const database = opened(path, busyMs)
  try {
    prepare(database, durability)
    return database
  } catch (cause) {
    database.close()
    throw unopened(path, cause)
  }
}

/** Hashes of keys and everybody's credits: a new file is its owner's alone, and SQLite makes its side files like it. */
const ownerOnly = 0o600

const opened = (path: string, timeout: number): DatabaseSync => {
  try {
    if (path !== ":memory:") {
      mkdirSync(dirname(path), { recursive: true })
      closeSync(openSync(path, "a", ownerOnly))
    }
    return new DatabaseSync(path, { timeout })
  } catch (cause) {
    throw unopened(path, cause)
  }
}

/** SQLite says what is wrong, and not with which file. */
const unopened = (path: string, cause: unknown): Error =>
  new Error(`The store ${path} cannot be opened: ${(cause as Error).message}`, { cause })

const prepare = (database: DatabaseSync, durability: Durability): void => {
  database.exec("PRAGMA journal_mode = WAL")
  database.exec(`PRAGMA synchronous = ${durability === "power" ? "FULL" : "NORMAL"}`)
  // A checkpoint costs two fsyncs: after 16 MB, not SQLite's 4, so that it is shared by more groups.
  database.exec("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000")
  database.exec("BEGIN IMMEDIATE")
  const { user_version: version } = database.prepare("PRAGMA user_version").get() as { user_version: number }
  if (version > schemaVersion) throw new Error(`it was written by a newer Tollgate (schema ${version})`)
  if (version === 0) database.exec(`${schema}; PRAGMA user_version = ${schemaVersion}`)
  database.exec("COMMIT")
}

/**
 * Holds and windows live in memory, so two gateways on one file would each give away the same credits. The lock is a
 * transaction on a file of its own: it dies with the process, however that ends.
 *
 * @returns what gives the ownership back
 * @throws Error when another gateway owns the file, or the lock beside it cannot be made
 */
export const own = (path: string): (() => void) => {
  if (path === ":memory:") return () => {}
  const lock = opened(`${path}.lock`, 0)
  try {
    lock.exec("BEGIN EXCLUSIVE")
  } catch (cause) {
    lock.close()
    const why = "another gateway is running on it; stop that one, or give this one a store of its own"
    throw new Error(`The store ${path} cannot be opened: ${why}`, { cause })
  }
  return () => lock.close()
}
