/** The configuration of a deployment, checked and with its defaults filled in. */

import type { Catalog, Secret, Vendor } from "../offer.ts"

/** Where something stands in a YAML file; lines and columns count from 1. */
export interface Position {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A step into plain data: keys of objects, indexes of lists. */
export type Path = readonly (string | number)[]

/** Something that is written down, for what shows only when all is put together. */
export interface Place {
  readonly at: Position
  /** `file:line:column path: message` for what stands at a path below it, or for the nearest thing around that. */
  problem(path: Path, message: string): string
}

/** One line of `plugins` or `endpoints`. Its options, to which `problem` points, are checked by the loader. */
export interface PluginLine extends Place {
  /** A built-in name, a path (relative to the file) or a package. */
  readonly name: string
  /** Plain data; `undefined` when the line has none. */
  readonly options: unknown
}

export interface SqliteStore {
  readonly kind: "sqlite"
  /** Absolute, or `:memory:`. */
  readonly path: string
  readonly durability: "power" | "process"
}

export interface RedisStore {
  readonly kind: "redis"
  readonly url: Secret
  readonly cluster: boolean
  readonly prefix: string
  readonly deadlineMs: number
}

export interface BootstrapMember {
  readonly name: string
  readonly micros: number
  /** Lower-case hex SHA-256 of each key. */
  readonly keys: readonly string[]
}

/** An organisation that is created when it does not exist. */
export interface BootstrapOrganisation {
  readonly name: string
  readonly gateway: boolean
  readonly models: "all" | readonly string[]
  readonly members: readonly BootstrapMember[]
}

export interface Config {
  /** The file that was asked for, absolute. */
  readonly file: string
  /** Every file that was read (catalog and secret files too), for watching. */
  readonly files: readonly string[]
  readonly listen: { readonly host: string; readonly port: number }
  readonly ops: { readonly host: string; readonly port: number; readonly token?: Secret }
  /** Starts with a slash and does not end with one. */
  readonly basePath: string
  /** IANA name. */
  readonly timezone: string
  readonly store: SqliteStore | RedisStore
  readonly limits: {
    /** All request bodies together. */
    readonly bodiesInMemoryBytes: number
    readonly connections: number
    /** Own time of a pipeline step, without `next()`. */
    readonly stepMs: number
  }
  readonly upstream: {
    readonly connections: number
    readonly drain: { readonly count: number; readonly timeMs: number; readonly bytes: number }
  }
  readonly shutdownMs: number
  readonly watch: boolean
  readonly sandbox: boolean
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly places: {
    readonly vendors: ReadonlyMap<string, Place>
    readonly models: ReadonlyMap<string, Place>
    readonly mounts: ReadonlyMap<string, Place>
  }
  readonly plugins: readonly PluginLine[]
  readonly endpoints: "all" | readonly PluginLine[]
  /** Path prefixes of each native family. */
  readonly mounts: Readonly<Record<string, readonly string[]>>
  readonly bootstrap: readonly BootstrapOrganisation[]
  readonly catalog: Catalog
}

export interface LoadOptions {
  /** `process.env` unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Of the command line: stronger than `PORT`, which is stronger than the file. */
  readonly overrides?: { readonly port?: number; readonly opsPort?: number }
  /** Nothing is served: secrets may be absent, but for the store's. */
  readonly storeOnly?: boolean
}
