/**
 * The rows of a group: accounts are read once per group and written back once, daily usage is summed before it is
 * written, ledger rows are inserted as they come. Everything here runs inside a write of `Groups`.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { memberKey, plus, type Quantities, type UsageKey } from "../member.ts"
import type { EntryKind, MemberRef } from "../store.ts"
import type { Groups } from "./groups.ts"

export interface AccountRow {
  readonly id: number
  granted: number
  spent: number
  sequence: number
  changed: boolean
}

export interface NewEntry {
  readonly kind: EntryKind
  readonly id: string
  readonly at: number
  readonly micros: number
  readonly shortfall: number
  readonly detail: string | null
  readonly reason: string | null
}

interface UsageSum {
  readonly account: number
  readonly key: UsageKey
  sums: Quantities
}

const sumColumns = ["requests", "micros", "input", "output", "cached", "seconds", "images"] as const

const upsertUsage = `
  INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ${sumColumns.map(() => "?").join(", ")})
  ON CONFLICT DO UPDATE SET ${sumColumns.map(name => `${name} = ${name} + excluded.${name}`).join(", ")}`

export class Book {
  readonly #accounts = new Map<string, AccountRow>()
  readonly #usage = new Map<string, UsageSum>()
  readonly #find: StatementSync
  readonly #create: StatementSync
  readonly #update: StatementSync
  readonly #insert: StatementSync
  readonly #upsert: StatementSync

  constructor(database: DatabaseSync, groups: Groups) {
    this.#find = database.prepare(
      "SELECT id, granted, spent, sequence FROM accounts WHERE organisation = ? AND member = ?",
    )
    this.#create = database.prepare(
      "INSERT INTO accounts (organisation, member, granted, spent, sequence) VALUES (?, ?, 0, 0, 0)",
    )
    this.#update = database.prepare("UPDATE accounts SET granted = ?, spent = ?, sequence = ? WHERE id = ?")
    this.#insert = database.prepare(
      "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id, account, kind) DO NOTHING",
    )
    this.#upsert = database.prepare(upsertUsage)
    groups.gather(
      () => this.#writeBack(),
      () => this.#forget(),
    )
  }

  /** The member's account as this group sees it, created when there is none. */
  account(member: MemberRef): AccountRow {
    const key = memberKey(member)
    const known = this.#accounts.get(key)
    if (known !== undefined) return known
    const row = this.#find.get(member.organisation, member.member) as Omit<AccountRow, "changed"> | undefined
    const account = row === undefined ? this.#open(member) : { ...row, changed: false }
    this.#accounts.set(key, account)
    return account
  }

  /** Adds a ledger row; false when the account has one of this kind and id already. */
  append(account: AccountRow, entry: NewEntry): boolean {
    const { kind, id, at, micros, shortfall, detail, reason } = entry
    const sequence = account.sequence + 1
    const { changes } = this.#insert.run(account.id, sequence, kind, id, at, micros, shortfall, detail, reason)
    if (changes === 0) return false
    account.sequence = sequence
    account.changed = true
    return true
  }

  addUsage(account: AccountRow, key: UsageKey, added: Quantities): void {
    const name = `${account.id}\n${key.join("\n")}`
    const sum = this.#usage.get(name)
    if (sum === undefined) this.#usage.set(name, { account: account.id, key, sums: added })
    else sum.sums = plus(sum.sums, added)
  }

  #open(member: MemberRef): AccountRow {
    const { lastInsertRowid } = this.#create.run(member.organisation, member.member)
    return { id: Number(lastInsertRowid), granted: 0, spent: 0, sequence: 0, changed: false }
  }

  #writeBack(): void {
    for (const { id, granted, spent, sequence, changed } of this.#accounts.values()) {
      if (changed) this.#update.run(granted, spent, sequence, id)
    }
    for (const { account, key, sums } of this.#usage.values()) this.#upsert.run(account, ...key, ...sums)
    this.#forget()
  }

  #forget(): void {
    this.#accounts.clear()
    this.#usage.clear()
  }
}
