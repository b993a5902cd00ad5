/**
 * The rows of the money verbs: accounts are read once and remembered, written back once per group; daily usage is
 * summed before it is written, ledger rows are inserted as they come. What changes something runs inside a write of
 * `Groups`.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { LRUCache } from "lru-cache"
import { memberKey } from "../member.ts"
import type { MemberRef } from "../store.ts"
import { plus, type Quantities, quantityNames, type UsageKey } from "../usage-sums.ts"
import type { Freshness } from "./freshness.ts"
import type { Groups } from "./groups.ts"
import type { LedgerRows, NewEntry } from "./rows.ts"

/** So many accounts are remembered, at about 200 bytes each. */
const rememberedMax = 10_000

export interface AccountRow {
  readonly id: number
  /** Whose it is. */
  readonly member: string
  granted: number
  spent: number
  sequence: number
  /** Where the newest row of the ledger stands, 0 for none. */
  last: number
}

interface UsageSum {
  readonly account: number
  readonly key: UsageKey
  sums: Quantities
}

const upsertUsage = `
  INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ${quantityNames.map(() => "?").join(", ")})
  ON CONFLICT DO UPDATE SET ${quantityNames.map(name => `${name} = ${name} + excluded.${name}`).join(", ")}`

export class Book {
  readonly #freshness: Freshness
  readonly #accounts = new LRUCache<string, AccountRow>({ max: rememberedMax })
  /** By their members, until they are written back: of one that is forgotten meanwhile, the file has an older state. */
  #changed = new Map<string, AccountRow>()
  readonly #usage = new Map<string, UsageSum>()
  readonly #find: StatementSync
  readonly #create: StatementSync
  readonly #update: StatementSync
  readonly #upsert: StatementSync
  readonly #rows: LedgerRows

  constructor(database: DatabaseSync, rows: LedgerRows, groups: Groups, freshness: Freshness) {
    this.#freshness = freshness
    this.#rows = rows
    this.#find = database.prepare(
      "SELECT id, granted, spent, sequence, last FROM accounts WHERE organisation = ? AND member = ?",
    )
    this.#create = database.prepare(
      "INSERT INTO accounts (organisation, member, granted, spent, sequence, last) VALUES (?, ?, 0, 0, 0, 0)",
    )
    this.#update = database.prepare("UPDATE accounts SET granted = ?, spent = ?, sequence = ?, last = ? WHERE id = ?")
    this.#upsert = database.prepare(upsertUsage)
    freshness.onStale(() => this.#accounts.clear())
    groups.gather({
      begun: () => freshness.checkNow(),
      finish: () => this.#writeBack(),
      forget: () => this.#forget(),
    })
  }

  /** The member's account as the file has it now, `undefined` when there is none. */
  read(member: MemberRef): Readonly<AccountRow> | undefined {
    this.#freshness.check()
    return this.#known(member)
  }

  /** Inside a group: the member's account, created when there is none. */
  account(member: MemberRef): AccountRow {
    return this.#known(member) ?? this.#keep(this.#open(member))
  }

  /** Adds a ledger row; false when the account has one of this kind and id already. */
  append(account: AccountRow, entry: NewEntry): boolean {
    const sequence = account.sequence + 1
    const row = this.#rows.add(account.id, sequence, account.last, entry)
    if (row === undefined) return false
    account.sequence = sequence
    account.last = row
    this.#changed.set(account.member, account)
    return true
  }

  addUsage(account: AccountRow, key: UsageKey, added: Quantities): void {
    const name = `${account.id}\n${key.join("\n")}`
    const sum = this.#usage.get(name)
    if (sum === undefined) this.#usage.set(name, { account: account.id, key, sums: added })
    else sum.sums = plus(sum.sums, added)
  }

  #known(member: MemberRef): AccountRow | undefined {
    const key = memberKey(member)
    const known = this.#accounts.get(key) ?? this.#changed.get(key)
    if (known !== undefined) return known
    const row = this.#find.get(member.organisation, member.member) as Omit<AccountRow, "member"> | undefined
    return row && this.#keep({ ...row, member: key })
  }

  #keep(account: AccountRow): AccountRow {
    this.#accounts.set(account.member, account)
    return account
  }

  #open(member: MemberRef): AccountRow {
    const { lastInsertRowid } = this.#create.run(member.organisation, member.member)
    const id = Number(lastInsertRowid)
    return { id, member: memberKey(member), granted: 0, spent: 0, sequence: 0, last: 0 }
  }

  #writeBack(): void {
    for (const { granted, spent, sequence, last, id } of this.#changed.values()) {
      this.#update.run(granted, spent, sequence, last, id)
    }
    for (const { account, key, sums } of this.#usage.values()) this.#upsert.run(account, ...key, ...sums)
    this.#changed = new Map()
    this.#usage.clear()
  }

  /** What is here may never have reached the file: all of it is read again. */
  #forget(): void {
    this.#accounts.clear()
    this.#changed = new Map()
    this.#usage.clear()
  }
}
