/** Windows, small records and usage on Redis. */

import type {
  MemberRef,
  Records,
  UsageBook,
  UsageQuery,
  UsageRow,
  WindowAnswer,
  WindowLimit,
  Windows,
} from "../store.ts"
import { plus, type Quantities, type UsageKey, usageColumns, usageRow, withinQuery } from "../usage-sums.ts"
import type { Keys } from "./keys.ts"
import type { Link } from "./link.ts"
import { scripts } from "./scripts.ts"

export const redisWindows = (link: Link, keys: Keys, time: () => string): Windows => ({
  async hit(bucket: string, member: MemberRef, { requests, windowMs }: WindowLimit): Promise<WindowAnswer> {
    const window = keys.member(member).window(bucket)
    const reply = (await link.script(scripts.hit, [window], time(), requests, windowMs)) as number[]
    const [allowed, remaining, retryAfterMs, resetMs] = reply as [number, number, number, number]
    return { allowed: allowed === 1, remaining, retryAfterMs, resetMs }
  },
})

const ttl = (ms: number): number => Math.max(1, Math.ceil(ms))

export const redisRecords = (link: Link, keys: Keys): Records => ({
  async put(key, value, ttlMs) {
    await link.command("SET", keys.record(key), value, "PX", ttl(ttlMs))
  },
  async get(key) {
    return ((await link.command("GET", keys.record(key))) as string | null) ?? undefined
  },
  async swap(key, from, to, ttlMs) {
    const expected = from === undefined ? "" : `=${from}`
    return (await link.script(scripts.swap, [keys.record(key)], expected, to, ttl(ttlMs))) === 1
  },
  async take(key) {
    return ((await link.command("GETDEL", keys.record(key))) as string | null) ?? undefined
  },
})

export const redisUsage = (link: Link, keys: Keys): UsageBook => ({
  async query(query: UsageQuery): Promise<readonly UsageRow[]> {
    const own = keys.member(query.member)
    const months = monthsOf(query.from, query.to)
    const hashes = await Promise.all(months.map(month => link.command("HGETALL", own.usage(month))))
    return sumUp(
      hashes.flatMap(hash => pairs(hash as readonly string[])),
      query,
    )
  },
})

/** A hash comes as its fields and values, one after the other. */
const pairs = (hash: readonly string[]): readonly (readonly [string, string])[] =>
  Array.from({ length: hash.length / 2 }, (_, at) => [hash[2 * at]!, hash[2 * at + 1]!])

/** `YYYY-MM` of all months that the days touch. */
const monthsOf = (from: string, to: string): readonly string[] => {
  const [first, last] = [monthNumber(from), monthNumber(to)]
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => monthText(first + at))
}

/** Months since the year 0: counted, for as text they have no order after 9999-12. */
const monthNumber = (day: string): number => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1

const monthText = (number: number): string =>
  `${String(Math.floor(number / 12)).padStart(4, "0")}-${String((number % 12) + 1).padStart(2, "0")}`

const sumUp = (fields: readonly (readonly [string, string])[], query: UsageQuery): readonly UsageRow[] => {
  const column = usageColumns.indexOf(query.by)
  const sums = new Map<string, Quantities>()
  for (const [field, text] of fields) {
    const key = JSON.parse(field) as UsageKey
    if (!withinQuery(key, query)) continue
    const name = key[column]!
    const added = text.split(" ").map(Number) as unknown as Quantities
    const before = sums.get(name)
    sums.set(name, before === undefined ? added : plus(before, added))
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, sum]) => usageRow(name, sum))
}
