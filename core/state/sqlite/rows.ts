/** The rows of the ledger: written once, read by their id or page by page. */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import type { ChargeDetail, Entry, EntryKind, MemberRef } from "../store.ts"
import { milestoneEvery } from "./schema.ts"

export interface NewEntry {
  readonly kind: EntryKind
  readonly id: string
  readonly at: number
  readonly micros: number
  readonly shortfall: number
  readonly detail: string | null
  readonly reason: string | null
}

export interface Page {
  readonly after: number
  readonly limit: number
}

interface EntryRow extends Omit<Entry, "member" | "detail" | "reason"> {
  readonly detail: string | null
  readonly reason: string | null
}

const columns = "sequence, kind, id, at, micros, shortfall, detail, reason"

/** From the nearest known row behind the page back to its first, by each row's `previous`. */
const pageOf = `
  WITH RECURSIVE
    behind (account, row) AS (
      SELECT id, coalesce((
        SELECT row FROM milestones WHERE account = a.id AND sequence >= :after + :limit ORDER BY sequence LIMIT 1
      ), last)
      FROM accounts a WHERE organisation = :organisation AND member = :member
    ),
    chain (account, previous, ${columns}) AS (
      SELECT account, previous, ${columns} FROM entries JOIN behind USING (account, row)
      UNION ALL
      SELECT e.account, e.previous, ${columns.replace(/\w+/g, "e.$&")} FROM chain c
      JOIN entries e ON e.row = c.previous AND e.account = c.account AND e.sequence < c.sequence
      WHERE c.sequence > :after + 1
    )
  SELECT ${columns} FROM chain WHERE sequence > :after ORDER BY sequence LIMIT :limit`

export class LedgerRows {
  readonly #insert: StatementSync
  readonly #milestone: StatementSync
  readonly #one: StatementSync
  readonly #page: StatementSync

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare(
      "INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id, account, kind) DO NOTHING",
    )
    this.#milestone = database.prepare("INSERT INTO milestones VALUES (?, ?, ?)")
    this.#one = database.prepare(`SELECT ${columns} FROM entries WHERE account = ? AND id = ? AND kind = ?`)
    this.#page = database.prepare(pageOf)
  }

  /** Where the row stands now; `undefined` when the account has one of this kind and id already. */
  add(account: number, sequence: number, previous: number, entry: NewEntry): number | undefined {
    const { kind, id, at, micros, shortfall, detail, reason } = entry
    const { changes, lastInsertRowid } = this.#insert.run(
      previous,
      account,
      sequence,
      kind,
      id,
      at,
      micros,
      shortfall,
      detail,
      reason,
    )
    if (changes === 0) return undefined
    const row = Number(lastInsertRowid)
    if (sequence % milestoneEvery === 0) this.#milestone.run(account, sequence, row)
    return row
  }

  one(account: number, member: MemberRef, kind: EntryKind, id: string): Entry | undefined {
    const row = this.#one.get(account, id, kind) as EntryRow | undefined
    return row && entryOf(row, member)
  }

  /** The oldest first. */
  page({ organisation, member }: MemberRef, { after, limit }: Page): readonly Entry[] {
    const rows = this.#page.all({ organisation, member, after, limit }) as unknown as readonly EntryRow[]
    return rows.map(row => entryOf(row, { organisation, member }))
  }
}

const entryOf = ({ detail, reason, ...row }: EntryRow, { organisation, member }: MemberRef): Entry => ({
  ...row,
  member: { organisation, member },
  ...(detail === null ? undefined : { detail: JSON.parse(detail) as ChargeDetail }),
  ...(reason === null ? undefined : { reason }),
})
