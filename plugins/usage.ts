/** `GET /usage/`: what was spent, by day, model, key, kind or route (specification 4.13). */

import {
  type Call,
  creditsJson,
  invalidInput,
  type Plugin,
  type UsageGroup,
  type UsageRow,
  usageGroups,
} from "../core/index.ts"

/** A year and a day: more would let one call read a table for long. */
const daysMax = 366
const scopes = ["key", "member"] as const

export default {
  name: "usage",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "GET",
      path: "/usage/",
      access: "key",
      dialect: "plain",
      model: "none",
      charge: "none",
      limit: "common",
      async handle(call) {
        const { from, to } = rangeOf(call.query, host.day(host.clock.now()))
        const by = oneOf(call, "by", usageGroups, "model")
        const scope = oneOf(call, "scope", scopes, "key")
        const { organisation, member, key } = call.get("principal")
        const own = scope === "key" ? { key } : {}
        const rows = await host.store.usage.query({ member: { organisation, member }, ...own, from, to, by })
        const data = rows.map(row => rowOf(by, row))
        return call.reply(200, {
          object: "usage",
          from,
          to,
          timezone: host.timezone,
          by,
          scope,
          data,
          total: sum(rows),
        })
      },
    })
  },
} satisfies Plugin

const oneOf = <Word extends string>(call: Call, name: string, words: readonly Word[], fallback: Word): Word => {
  const given = call.query.get(name)
  if (given === null) return fallback
  const word = words.find(one => one === given)
  if (word !== undefined) return word
  const expected = words.map(one => `'${one}'`).join(", ")
  throw invalidInput(["query", name], `Input should be one of ${expected}`, "literal_error", given)
}

/**
 * Inclusive days; the current month unless told otherwise.
 *
 * @param today `YYYY-MM-DD` in the time zone of the deployment
 * @throws GatewayError `validation_failed` (422): no date, backwards, or longer than 366 days
 */
export const rangeOf = (query: URLSearchParams, today: string): { readonly from: string; readonly to: string } => {
  const to = dayOf(query, "to") ?? today
  const from = dayOf(query, "from") ?? `${to.slice(0, 8)}01`
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1
  if (days < 1) throw invalidInput(["query", "from"], "Input should not be after 'to'", "value_error", from)
  if (days > daysMax) {
    throw invalidInput(["query", "from"], `The range should have at most ${daysMax} days`, "value_error", from)
  }
  return { from, to }
}

const dayOf = (query: URLSearchParams, name: string): string | undefined => {
  const day = query.get(name)
  if (day === null) return undefined
  const time = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(day) : Number.NaN
  // The 30th of February is read as a day of March: only a day that comes back as written is one.
  if (!Number.isNaN(time) && new Date(time).toISOString().startsWith(day)) return day
  throw invalidInput(["query", name], "Input should be a valid date, YYYY-MM-DD", "date_parsing", day)
}

type Sums = Omit<UsageRow, "name">

const shown = ({ requests, micros, input, output, cached, seconds, images }: Sums) => ({
  requests,
  credits: creditsJson(micros),
  input_tokens: input,
  output_tokens: output,
  cached_tokens: cached,
  seconds,
  images,
})

const rowOf = (by: UsageGroup, row: UsageRow) => ({ [by]: row.name, ...shown(row) })

const nothing: Sums = { requests: 0, micros: 0, input: 0, output: 0, cached: 0, seconds: 0, images: 0 }

/** Micros are added, not credits: the total is exact. */
const sum = (rows: readonly UsageRow[]) => {
  const fields = Object.keys(nothing) as (keyof Sums)[]
  const add = (total: Sums, row: UsageRow): Sums =>
    Object.fromEntries(fields.map(field => [field, total[field] + row[field]])) as unknown as Sums
  return shown(rows.reduce(add, nothing))
}
