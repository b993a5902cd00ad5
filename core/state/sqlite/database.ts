/** Opens the file of the embedded store, and makes sure that one gateway owns it. */

import { closeSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { schema, schemaVersion, upgrades } from "./schema.ts"

/** How long a write may wait for the command line tool that writes beside the gateway. */
export const busyMs = 1_000

export type Durability = "power" | "process"

export interface OpenOptions {
  readonly durability: Durability
  /** This process is the gateway that owns the file. */
  readonly isOwner: boolean
}

/**
 * @throws Error naming the file when it cannot be opened, is no store, was written by a newer Tollgate, or by an older
 *   one and is not ours to upgrade
 */
export const openDatabase = (path: string, { durability, isOwner }: OpenOptions): DatabaseSync => {
  const database = opened(path, busyMs)
  try {
    prepare(database, durability, isOwner)
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

const prepare = (database: DatabaseSync, durability: Durability, isOwner: boolean): void => {
  database.exec("PRAGMA journal_mode = WAL")
  database.exec(`PRAGMA synchronous = ${durability === "power" ? "FULL" : "NORMAL"}`)
  // A checkpoint costs two fsyncs: after 16 MB, not SQLite's 4, so that it is shared by more groups.
  database.exec("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000")
  database.exec("BEGIN IMMEDIATE")
  const { user_version: version } = database.prepare("PRAGMA user_version").get() as { user_version: number }
  if (version > schemaVersion) throw new Error(`it was written by a newer Tollgate (schema ${version})`)
  if (version === 0) database.exec(schema)
  else if (version < schemaVersion) upgrade(database, version, isOwner)
  database.exec(`PRAGMA user_version = ${schemaVersion}; COMMIT`)
}

/** Only for who owns the file: a gateway of the older version may run on it, and would find other tables than its own. */
const upgrade = (database: DatabaseSync, from: number, isOwner: boolean): void => {
  if (!isOwner) throw new Error("it was written by an older Tollgate; start the gateway of this version once")
  for (let version = from; version < schemaVersion; version += 1) database.exec(upgrades[version] as string)
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
