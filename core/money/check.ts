/**
 * Proves the rules of the ledger from the store alone, member by member: balances are the replay of their rows, rows
 * have no gap, nothing is below zero, nothing ended or was given back twice, no hold is past its life.
 */

import type { Balance, Entry, MemberRef, OpenHoldState, Store } from "../state/store.ts"

/** 1 sum, 2 below zero, 3 ends once, 4 settled and refunded once, 5 balance = replay, 6 no row lost. */
export type LedgerRule = 1 | 2 | 3 | 4 | 5 | 6

export interface Finding {
  readonly member: MemberRef
  readonly rule: LedgerRule
  readonly message: string
}

/** What was looked through. */
export interface Proven {
  readonly members: number
  readonly rows: number
}

export interface CheckOptions {
  /** How long past its life a hold may wait for the sweeper; two of its beats at the usual hold life. */
  readonly graceMs?: number
}

interface Replay {
  readonly findings: Finding[]
  readonly charges: Map<string, Entry>
  readonly once: Set<string>
  sequence: number
  granted: number
  spent: number
}

const pageRows = 1_000
const quietTries = 20

/** No finding = the ledger is right. Safe beside running gateways. */
export async function* checkLedger(
  store: Store,
  { graceMs = 120_000 }: CheckOptions = {},
): AsyncGenerator<Finding, Proven> {
  let [members, rows] = [0, 0]
  for await (const member of store.accounts.all()) {
    const checked = await checkMember(store, member, graceMs)
    yield* checked.findings
    members += 1
    rows += checked.rows
  }
  return { members, rows }
}

const checkMember = async (store: Store, member: MemberRef, graceMs: number) => {
  const replay: Replay = { findings: [], charges: new Map(), once: new Set(), sequence: 0, granted: 0, spent: 0 }
  const { balance, holds } = await quietMoment(store, member, replay)
  const findings = [
    ...replay.findings,
    ...sumFindings(balance, replay),
    ...(holds === undefined ? [] : holdFindings(balance, holds, replay, graceMs)),
  ].map((finding): Finding => ({ ...finding, member }))
  return { findings, rows: replay.sequence }
}

/** Balance and holds at a moment at which no row is missing from the replay: nothing moves between two equal reads. */
const quietMoment = async (store: Store, member: MemberRef, replay: Replay) => {
  for (let tries = 0; ; tries += 1) {
    await readRows(store, member, replay)
    const before = await store.accounts.balance(member)
    const holds = await store.accounts.holds?.(member)
    const balance = await store.accounts.balance(member)
    const rows = await store.accounts.entries(member, { after: replay.sequence, limit: 1 })
    const quiet = rows.length === 0 && before.available === balance.available && before.held === balance.held
    if (quiet || tries === quietTries) return { balance, holds: quiet ? holds : undefined }
  }
}

const readRows = async (store: Store, member: MemberRef, replay: Replay): Promise<void> => {
  for (;;) {
    const rows = await store.accounts.entries(member, { after: replay.sequence, limit: pageRows })
    for (const row of rows) take(row, replay)
    if (rows.length < pageRows) return
  }
}

const take = (row: Entry, replay: Replay): void => {
  const note = (rule: LedgerRule, message: string): void => {
    replay.findings.push({
      member: row.member,
      rule,
      message: `row ${row.sequence} (${row.kind} ${row.id}): ${message}`,
    })
  }
  if (row.sequence !== replay.sequence + 1) note(6, `follows row ${replay.sequence}`)
  replay.sequence = row.sequence
  const name = `${row.kind} ${row.id}`
  if (replay.once.has(name)) note(row.kind === "lapse" ? 3 : 4, "is there twice")
  replay.once.add(name)
  kinds[row.kind](row, replay, note)
}

type Note = (rule: LedgerRule, message: string) => void

/** What each kind of row does to the sums, and what its amounts may be. */
const kinds: Readonly<Record<Entry["kind"], (row: Entry, replay: Replay, note: Note) => void>> = {
  grant(row, replay, note) {
    if (row.micros < 0) note(2, `grants ${row.micros}`)
    replay.granted += row.micros
  },
  charge(row, replay, note) {
    if (row.micros > 0 || row.shortfall < 0) note(2, `charges ${-row.micros}, short of ${row.shortfall}`)
    replay.charges.set(row.id, row)
    replay.spent -= row.micros
  },
  refund(row, replay, note) {
    const charge = replay.charges.get(row.id)
    if (charge === undefined) note(4, "gives back what was never charged")
    else if (row.micros !== 0 - charge.micros) note(4, `gives back ${row.micros} of a charge of ${-charge.micros}`)
    replay.spent -= row.micros
  },
  lapse(row, _, note) {
    if (row.micros !== 0) note(5, `moves ${row.micros}`)
  },
}

type Found = Omit<Finding, "member">

const sumFindings = ({ granted, available, held, spent }: Balance, replay: Replay): readonly Found[] => {
  const found: Found[] = []
  const expect = (rule: LedgerRule, right: boolean, message: string): void => {
    if (!right) found.push({ rule, message })
  }
  expect(1, granted === available + held + spent, `granted ${granted} is not ${available} + ${held} + ${spent}`)
  expect(2, available >= 0 && held >= 0 && spent >= 0, `below zero: ${available}, ${held} held, ${spent} spent`)
  expect(5, granted === replay.granted, `granted is ${granted}, its rows say ${replay.granted}`)
  expect(5, spent === replay.spent, `spent is ${spent}, its rows say ${replay.spent}`)
  return found
}

const holdFindings = (balance: Balance, holds: readonly OpenHoldState[], replay: Replay, graceMs: number) => {
  const found: Found[] = []
  let sum = 0
  for (const { id, micros, expiresInMs } of holds) {
    sum += micros
    if (replay.charges.has(id)) found.push({ rule: 3, message: `hold ${id} is open although it was settled` })
    if (expiresInMs < -graceMs) found.push({ rule: 3, message: `hold ${id} is past its life by ${-expiresInMs} ms` })
  }
  if (sum !== balance.held) found.push({ rule: 5, message: `held is ${balance.held}, the open holds say ${sum}` })
  return found
}
