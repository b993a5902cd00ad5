/** What is remembered: one page of interfaces, two engines (sqlite, redis), one contract suite. */

import type { Usage } from "../offer.ts"

export type KeyState = "valid" | "disabled" | "revoked"

export interface Organisation {
  readonly name: string
  readonly title: string
  /** The organisation's gateway switch. */
  readonly gateway: boolean
  /** `"all"`, or the models that it may use. */
  readonly models: "all" | readonly string[]
  /** Models taken away from `"all"`. */
  readonly disabled: readonly string[]
  /** The price overlay of the catalog; in a change, `undefined` takes it away. */
  readonly overlay?: string | undefined
}

/** Whose call it is: what a ledger row names. */
export interface MemberRef {
  readonly organisation: string
  readonly member: string
}

export interface KeyRecord extends MemberRef {
  /** Public id of the key; never the key. */
  readonly id: string
  readonly name: string
  readonly state: KeyState
  readonly createdAt: number
}

/** What one read by digest gives. */
export interface Identity {
  readonly key: KeyRecord
  readonly organisation: Organisation
}

export type OrganisationChange = (before: Organisation) => Partial<Omit<Organisation, "name">>

/** Digests are lower-case hex SHA-256 of the whole key. Key state is read fresh; organisations are at most 1 s old. */
export interface Directory {
  identify(digest: string): Promise<Identity | undefined>
  organisation(name: string): Promise<Organisation | undefined>
  organisations(): Promise<readonly Organisation[]>
  /** False when it exists already. */
  createOrganisation(organisation: Organisation): Promise<boolean>
  /**
   * The record as it is now, `undefined` when there is none of that name. `change` is asked with what nobody changes
   * meanwhile, more than once if need be.
   */
  changeOrganisation(name: string, change: OrganisationChange): Promise<Organisation | undefined>
  members(organisation: string): Promise<readonly string[]>
  createMember(member: MemberRef): Promise<boolean>
  keys(organisation: string): Promise<readonly KeyRecord[]>
  createKey(key: KeyRecord, digest: string): Promise<boolean>
  /** Durable before it resolves; `revoked` is final. The record as it is now, `undefined` when unknown. */
  changeKey(id: string, state: KeyState): Promise<KeyRecord | undefined>
}

/** Money in integer micros. `granted = available + held + spent`, `available >= 0`, `held >= 0`, always. */
export interface Balance {
  readonly granted: number
  readonly available: number
  readonly held: number
  readonly spent: number
}

export interface WindowLimit {
  readonly requests: number
  readonly windowMs: number
}

export interface HoldRequest {
  /** The call's own; every verb is idempotent by it. */
  readonly id: string
  readonly member: MemberRef
  /** Wanted; `min(micros, available)` is set aside. */
  readonly micros: number
  /** Refused with `exhausted` when less than this is available. */
  readonly least: number
  /** Counted in the same step; a hold refused as `exhausted` does not count. */
  readonly reservations?: WindowLimit
}

export type HoldAnswer =
  | { readonly state: "held"; readonly micros: number }
  | { readonly state: "exhausted" }
  | { readonly state: "reservations_exceeded" }

/** How the usage of a charge is known. */
export type UsageSource = "vendor" | "counted" | "none"

/** What a charge row says beside its amount. */
export interface ChargeDetail {
  readonly key: string
  readonly model: string
  /** The model's type, or what the route says in its place. */
  readonly kind: string
  readonly route: string
  readonly priceDigest: string
  readonly usage: Usage
  readonly source: UsageSource
}

export interface ChargeRequest {
  readonly id: string
  readonly member: MemberRef
  readonly micros: number
  readonly detail: ChargeDetail
}

export interface ChargeAnswer {
  /** What was really taken: `micros` less the shortfall. */
  readonly charged: number
  readonly shortfall: number
  /** True when this id was settled before: nothing moved now. */
  readonly repeated: boolean
}

export type EntryKind = "grant" | "charge" | "refund" | "lapse"

/** One append-only ledger row. `sequence` has no gaps per member. */
export interface Entry {
  readonly sequence: number
  readonly kind: EntryKind
  readonly id: string
  readonly member: MemberRef
  readonly at: number
  /** Micros: positive for a grant and a refund, negative for a charge, 0 for a lapse. */
  readonly micros: number
  readonly shortfall: number
  readonly detail?: ChargeDetail
  readonly reason?: string
}

export interface OpenHoldState {
  readonly id: string
  readonly micros: number
  /** Milliseconds until it lapses by the store's own time; negative when it is overdue. */
  readonly expiresInMs: number
}

/** The money verbs. Each is one transaction (sqlite) or one script (redis) and is durable when it resolves. */
export interface Accounts {
  /** A repeat answers what was held, and holds nothing more; 0 when its call was settled a moment ago. */
  hold(request: HoldRequest): Promise<HoldAnswer>
  /** Lengthens the lives of holds of this process; ids that are gone are left out of the answer. */
  renew(holds: readonly { readonly id: string; readonly member: MemberRef }[]): Promise<readonly string[]>
  /** Ends the hold (or, when it lapsed, charges from available), writes row and daily usage. */
  settle(request: ChargeRequest): Promise<ChargeAnswer>
  release(id: string, member: MemberRef): Promise<void>
  /** Releases holds past their time and records each id once; the number of holds. */
  sweep(): Promise<number>
  /** Gives a charge back once; `undefined` when there is no such charge, 0 when it was given back before. */
  refund(id: string, member: MemberRef, reason: string): Promise<number | undefined>
  grant(id: string, member: MemberRef, micros: number, reason: string): Promise<Balance>
  balance(member: MemberRef): Promise<Balance>
  /** Ledger rows in their order; pages by `after` (a sequence number). */
  entries(member: MemberRef, page: { readonly after: number; readonly limit: number }): Promise<readonly Entry[]>
  /** Open holds as the store sees them: for the check of the ledger. */
  holds?(member: MemberRef): Promise<readonly OpenHoldState[]>
  /** Every member that has an account. */
  all(): AsyncIterable<MemberRef>
}

export interface WindowAnswer {
  readonly allowed: boolean
  readonly remaining: number
  /** Milliseconds until one more hit passes (refused), 0 when allowed. */
  readonly retryAfterMs: number
  /** Milliseconds until the whole window is free again. */
  readonly resetMs: number
}

/** Exact sliding windows: the times of the last `limit` accepted hits; refused hits are not recorded. */
export interface Windows {
  hit(bucket: string, member: MemberRef, limit: WindowLimit): Promise<WindowAnswer>
}

/** Small records with expiry: stored response ids, thought signatures, reasoning that a model wants back. */
export interface Records {
  put(key: string, value: string, ttlMs: number): Promise<void>
  get(key: string): Promise<string | undefined>
  /** Replaces `from` by `to` (undefined = absent); false when another value stands there. */
  swap(key: string, from: string | undefined, to: string, ttlMs: number): Promise<boolean>
  /** Reads and removes; one caller wins. */
  take(key: string): Promise<string | undefined>
}

export const usageGroups = ["model", "day", "key", "kind", "route"] as const
export type UsageGroup = (typeof usageGroups)[number]

export interface UsageQuery {
  readonly member: MemberRef
  /** Only this key's usage; absent: the whole member. */
  readonly key?: string
  /** Inclusive days `YYYY-MM-DD` in the time zone of the deployment. */
  readonly from: string
  readonly to: string
  readonly by: UsageGroup
}

/** Sums over the days asked for; a refund is negative on its own day. */
export interface UsageRow {
  readonly name: string
  readonly requests: number
  readonly micros: number
  readonly input: number
  readonly output: number
  readonly cached: number
  readonly seconds: number
  readonly images: number
}

export interface UsageBook {
  query(query: UsageQuery): Promise<readonly UsageRow[]>
}

/** What a running store needs from the process. */
export interface StoreOptions {
  readonly now: () => number
  /** Milliseconds that nobody sets, for what lasts no longer than this process; `now` unless told otherwise. */
  readonly steady?: () => number
  /** The day of a time, `YYYY-MM-DD`, in the time zone of the deployment. */
  readonly day: (at: number) => string
  /** 5 minutes unless a test says otherwise. */
  readonly holdLifeMs: number
  readonly onState?: (up: boolean, cause?: unknown) => void
  readonly observe?: (operation: string, seconds: number, failed: boolean) => void
}

export interface Store {
  readonly kind: "sqlite" | "redis"
  readonly directory: Directory
  readonly accounts: Accounts
  readonly windows: Windows
  readonly records: Records
  readonly usage: UsageBook
  /** Whether calls can be served now; cheap. */
  ready(): boolean
  close(): Promise<void>
}
