/** The money verbs of the embedded store. Holds are memory; rows and balances are written in groups. */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { beyondGrantedMax, checkMicros, grantedMax } from "../amounts.ts"
import { storeUnavailable } from "../failure.ts"
import { reservationsBucket } from "../member.ts"
import type {
  Accounts,
  Balance,
  ChargeAnswer,
  ChargeRequest,
  Entry,
  HoldAnswer,
  HoldRequest,
  MemberRef,
  StoreOptions,
} from "../store.ts"
import { negative, quantities, usageKey } from "../usage-sums.ts"
import type { MemoryWindows } from "../windows.ts"
import { Book } from "./book.ts"
import type { Freshness } from "./freshness.ts"
import type { Groups } from "./groups.ts"
import { Holds, type MemberHolds } from "./holds.ts"
import { LedgerRows, type Page } from "./rows.ts"

type SteadyOptions = StoreOptions & Required<Pick<StoreOptions, "steady">>

export class SqliteAccounts implements Accounts {
  readonly #groups: Groups
  readonly #windows: MemoryWindows
  readonly #options: SteadyOptions
  readonly #day: (at: number) => string
  readonly #holds = new Holds()
  readonly #book: Book
  readonly #rows: LedgerRows
  readonly #members: StatementSync

  constructor(
    database: DatabaseSync,
    groups: Groups,
    freshness: Freshness,
    windows: MemoryWindows,
    options: SteadyOptions,
  ) {
    this.#groups = groups
    this.#windows = windows
    this.#options = options
    this.#day = options.day
    this.#rows = new LedgerRows(database)
    this.#book = new Book(database, this.#rows, groups, freshness)
    this.#members = database.prepare(
      "SELECT id, organisation, member FROM accounts WHERE id > ? ORDER BY id LIMIT 1000",
    )
  }

  async hold(request: HoldRequest): Promise<HoldAnswer> {
    const { id, member, micros, least } = request
    checkMicros(micros, least)
    // While nothing can be written, a call could not be charged.
    if (!this.#groups.up) throw storeUnavailable(new Error("The store takes no writes"))
    const holds = this.#holds.of(member)
    const open = holds.find(id)
    if (open !== undefined) return { state: "held", micros: open.micros }
    if (holds.isSettled(id)) return { state: "held", micros: 0 }
    const { available } = this.#balance(member, holds)
    if (available < least) return { state: "exhausted" }
    if (request.reservations !== undefined) {
      const { allowed } = this.#windows.hitNow(reservationsBucket, member, request.reservations)
      if (!allowed) return { state: "reservations_exceeded" }
    }
    const held = Math.min(micros, available)
    holds.add({ id, micros: held, expiresAt: this.#options.steady() + this.#options.holdLifeMs })
    return { state: "held", micros: held }
  }

  async renew(holds: readonly { readonly id: string; readonly member: MemberRef }[]): Promise<readonly string[]> {
    const expiresAt = this.#options.steady() + this.#options.holdLifeMs
    const renewed: string[] = []
    for (const { id, member } of holds) {
      const hold = this.#holds.of(member).find(id)
      if (hold === undefined) continue
      hold.expiresAt = expiresAt
      renewed.push(id)
    }
    return renewed
  }

  async settle(request: ChargeRequest): Promise<ChargeAnswer> {
    checkMicros(request.micros)
    return this.#groups.write(() => this.#charge(request))
  }

  async release(id: string, member: MemberRef): Promise<void> {
    this.#holds.of(member).end(id)
  }

  async sweep(): Promise<number> {
    this.#windows.sweep()
    const overdue = this.#holds.sweep(this.#options.steady())
    const lapsed = await Promise.all(overdue.map(({ id, member }) => this.#groups.write(() => this.#lapse(id, member))))
    return lapsed.filter(Boolean).length
  }

  async refund(id: string, member: MemberRef, reason: string): Promise<number | undefined> {
    return this.#groups.write(() => this.#giveBack(id, member, reason))
  }

  async grant(id: string, member: MemberRef, micros: number, reason: string): Promise<Balance> {
    checkMicros(micros)
    await this.#groups.write(() => this.#give(id, member, micros, reason))
    return this.balance(member)
  }

  async balance(member: MemberRef): Promise<Balance> {
    return this.#balance(member)
  }

  async holds(member: MemberRef) {
    const now = this.#options.steady()
    return [...this.#holds.of(member).open].map(({ id, micros, expiresAt }) => ({
      id,
      micros,
      expiresInMs: expiresAt - now,
    }))
  }

  async entries(member: MemberRef, page: Page): Promise<readonly Entry[]> {
    return read(() => this.#rows.page(member, page))
  }

  async *all(): AsyncGenerator<MemberRef> {
    let after = 0
    for (;;) {
      const from = after
      const rows = read(() => this.#members.all(from)) as unknown as readonly (MemberRef & { readonly id: number })[]
      if (rows.length === 0) return
      for (const { id, organisation, member } of rows) {
        after = id
        yield { organisation, member }
      }
    }
  }

  #balance(member: MemberRef, holds = this.#holds.of(member)): Balance {
    const account = read(() => this.#book.read(member))
    if (account === undefined) return { granted: 0, available: 0, held: 0, spent: 0 }
    const { granted, spent } = account
    // A charge from beside the gateway knows of no holds: what it took is not held any more.
    const held = Math.min(holds.total, granted - spent)
    return { granted, available: granted - spent - held, held, spent }
  }

  // ---- inside a group ----

  #charge({ id, member, micros, detail }: ChargeRequest): ChargeAnswer {
    const account = this.#book.account(member)
    const holds = this.#holds.of(member)
    const own = holds.find(id)?.micros ?? 0
    const left = account.granted - account.spent
    // Where a charge from beside the gateway took what others hold, each hold pays for its own call while anything is left.
    const charged = Math.min(micros, Math.max(own, left - holds.total + own), left)
    const shortfall = micros - charged
    const at = this.#options.now()
    const row = {
      kind: "charge",
      id,
      at,
      micros: 0 - charged,
      shortfall,
      detail: JSON.stringify(detail),
      reason: null,
    } as const
    const added = this.#book.append(account, row)
    this.#end(id, holds) // also for a repeated id: whatever stands under it must not stay held
    if (!added) return this.#repeated(account.id, member, id)
    holds.settle(id)
    this.#groups.undo(() => holds.unsettle(id))
    account.spent += charged
    this.#book.addUsage(account, usageKey(this.#day(at), detail), quantities(charged, detail.usage))
    return { charged, shortfall, repeated: false }
  }

  #repeated(account: number, member: MemberRef, id: string): ChargeAnswer {
    const { micros, shortfall } = this.#rows.one(account, member, "charge", id) as Entry
    return { charged: 0 - micros, shortfall, repeated: true }
  }

  #lapse(id: string, member: MemberRef): boolean {
    const holds = this.#holds.of(member)
    const hold = holds.find(id)
    if (hold === undefined || hold.expiresAt > this.#options.steady()) return false
    this.#end(id, holds)
    // A hold that was repeated after it lapsed has its row.
    this.#book.append(this.#book.account(member), plain("lapse", id, this.#options.now(), 0, null))
    return true
  }

  #giveBack(id: string, member: MemberRef, reason: string): number | undefined {
    const account = this.#book.account(member)
    const charge = this.#rows.one(account.id, member, "charge", id)
    if (charge?.detail === undefined) return undefined
    const at = this.#options.now()
    const micros = 0 - charge.micros
    if (!this.#book.append(account, plain("refund", id, at, micros, reason))) return 0
    account.spent -= micros
    const { detail } = charge
    this.#book.addUsage(account, usageKey(this.#day(at), detail), negative(quantities(micros, detail.usage)))
    return micros
  }

  #give(id: string, member: MemberRef, micros: number, reason: string): void {
    const account = this.#book.account(member)
    if (account.granted + micros > grantedMax) throw beyondGrantedMax(micros)
    if (this.#book.append(account, plain("grant", id, this.#options.now(), micros, reason))) account.granted += micros
  }

  #end(id: string, holds: MemberHolds): void {
    const hold = holds.end(id)
    if (hold !== undefined) this.#groups.undo(() => holds.add(hold))
  }
}

const plain = (kind: "grant" | "refund" | "lapse", id: string, at: number, micros: number, reason: string | null) =>
  ({ kind, id, at, micros, shortfall: 0, detail: null, reason }) as const

const read = <T>(statement: () => T): T => {
  try {
    return statement()
  } catch (cause) {
    throw storeUnavailable(cause)
  }
}
