/** Organisations, members and keys of the embedded store: as the file has them in this turn. */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { LRUCache } from "lru-cache"
import { storeUnavailable } from "../failure.ts"
import type { Directory, Identity, KeyRecord, KeyState, MemberRef, Organisation, OrganisationChange } from "../store.ts"
import type { Freshness } from "./freshness.ts"
import type { Groups } from "./groups.ts"

/** So many identities are remembered, at about 400 bytes each; digests of unknown keys are not. */
const rememberedMax = 10_000

interface KeyRow {
  readonly id: string
  readonly organisation: string
  readonly member: string
  readonly name: string
  readonly state: KeyState
  readonly created_at: number
}

const keyColumns =
  "k.id AS id, k.organisation AS organisation, k.member AS member, k.name AS name, k.state AS state, k.created_at AS created_at"

export class SqliteDirectory implements Directory {
  readonly #groups: Groups
  readonly #freshness: Freshness
  readonly #identities = new LRUCache<string, Identity>({ max: rememberedMax })
  readonly #database: DatabaseSync
  readonly #identify: StatementSync
  readonly #organisation: StatementSync
  /** Parsed records by their text: an organisation costs its JSON only when it changed. */
  readonly #parsed = new Map<string, { readonly text: string; readonly organisation: Organisation }>()

  constructor(database: DatabaseSync, groups: Groups, freshness: Freshness) {
    this.#groups = groups
    this.#freshness = freshness
    freshness.onStale(() => this.#identities.clear())
    this.#database = database
    this.#identify = database.prepare(
      `SELECT ${keyColumns}, o.record AS record FROM keys k JOIN organisations o ON o.name = k.organisation WHERE k.digest = ?`,
    )
    this.#organisation = database.prepare("SELECT record FROM organisations WHERE name = ?")
  }

  async identify(digest: string): Promise<Identity | undefined> {
    try {
      this.#freshness.check()
      return this.#identities.get(digest) ?? this.#readIdentity(digest)
    } catch (cause) {
      throw storeUnavailable(cause)
    }
  }

  async organisation(name: string): Promise<Organisation | undefined> {
    try {
      const row = this.#organisation.get(name) as { readonly record: string } | undefined
      return row && this.#parse(name, row.record)
    } catch (cause) {
      throw storeUnavailable(cause)
    }
  }

  async organisations(): Promise<readonly Organisation[]> {
    const rows = this.#all("SELECT record FROM organisations ORDER BY name") as { readonly record: string }[]
    return rows.map(({ record }) => JSON.parse(record) as Organisation)
  }

  createOrganisation(organisation: Organisation): Promise<boolean> {
    const { name } = organisation
    return this.#write(
      "INSERT INTO organisations VALUES (?, ?) ON CONFLICT DO NOTHING",
      name,
      JSON.stringify(organisation),
    )
  }

  changeOrganisation(name: string, change: OrganisationChange): Promise<Organisation | undefined> {
    return this.#change(() => {
      const row = this.#organisation.get(name) as { readonly record: string } | undefined
      if (row === undefined) return undefined
      const before = JSON.parse(row.record) as Organisation
      const changed = { ...before, ...change(before), name }
      this.#database.prepare("UPDATE organisations SET record = ? WHERE name = ?").run(JSON.stringify(changed), name)
      return changed
    })
  }

  async members(organisation: string): Promise<readonly string[]> {
    const rows = this.#all("SELECT name FROM members WHERE organisation = ? ORDER BY name", organisation)
    return (rows as { readonly name: string }[]).map(({ name }) => name)
  }

  createMember({ organisation, member }: MemberRef): Promise<boolean> {
    return this.#write("INSERT INTO members VALUES (?, ?) ON CONFLICT DO NOTHING", organisation, member)
  }

  async keys(organisation: string): Promise<readonly KeyRecord[]> {
    const rows = this.#all(
      `SELECT ${keyColumns} FROM keys k WHERE organisation = ? ORDER BY created_at, id`,
      organisation,
    )
    return (rows as unknown as KeyRow[]).map(keyOf)
  }

  createKey({ id, organisation, member, name, state, createdAt }: KeyRecord, digest: string): Promise<boolean> {
    const insert = "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return this.#write(insert, digest, id, organisation, member, name, state, createdAt)
  }

  changeKey(id: string, state: KeyState): Promise<KeyRecord | undefined> {
    return this.#change(() => {
      this.#database.prepare("UPDATE keys SET state = ? WHERE id = ? AND state != 'revoked'").run(state, id)
      const row = this.#database.prepare(`SELECT ${keyColumns} FROM keys k WHERE id = ?`).get(id) as KeyRow | undefined
      return row && keyOf(row)
    })
  }

  #write(statement: string, ...values: readonly (string | number)[]): Promise<boolean> {
    return this.#change(() => this.#database.prepare(statement).run(...values).changes === 1)
  }

  /** A group runs in one piece: nothing is read, and so remembered, between this and its COMMIT or rollback. */
  #change<T>(run: () => T): Promise<T> {
    return this.#groups.write(() => {
      this.#identities.clear()
      return run()
    })
  }

  #readIdentity(digest: string): Identity | undefined {
    const row = this.#identify.get(digest) as (KeyRow & { readonly record: string }) | undefined
    if (row === undefined) return undefined
    const identity = { key: keyOf(row), organisation: this.#parse(row.organisation, row.record) }
    this.#identities.set(digest, identity)
    return identity
  }

  #all(statement: string, ...values: readonly string[]): unknown[] {
    try {
      return this.#database.prepare(statement).all(...values)
    } catch (cause) {
      throw storeUnavailable(cause)
    }
  }

  #parse(name: string, text: string): Organisation {
    const known = this.#parsed.get(name)
    if (known?.text === text) return known.organisation
    const organisation = JSON.parse(text) as Organisation
    this.#parsed.set(name, { text, organisation })
    return organisation
  }
}

const keyOf = ({ id, organisation, member, name, state, created_at: createdAt }: KeyRow): KeyRecord => ({
  id,
  organisation,
  member,
  name,
  state,
  createdAt,
})
