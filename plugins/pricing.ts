/** Holds what a call may cost before any vendor hears of it, and settles what it did cost. */

import {
  type Bill,
  type Body,
  type Bucket,
  type Call,
  type Demand,
  durationSchema,
  estimatedInput,
  type Host,
  inputBuckets,
  type JsonSchema,
  type Model,
  outputBuckets,
  type Plugin,
  type PriceCard,
  type PriceLine,
  parseDuration,
  type Quote,
  type Rate,
  type Route,
  type Usage,
} from "../core/index.ts"

interface Options {
  /** The most output tokens that a hold counts, whatever the request or the model allows. */
  readonly output_allowance: number
  readonly reservations: { readonly requests: number; readonly window: string }
}

export default {
  name: "pricing",
  api: 1,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      output_allowance: { type: "integer", minimum: 1, maximum: 10_000_000, default: 8192 },
      reservations: {
        type: "object",
        additionalProperties: false,
        required: ["requests", "window"],
        properties: { requests: { type: "integer", minimum: 1, maximum: 1_000_000 }, window: durationSchema },
        default: { requests: 300, window: "60s" },
      },
    },
  },
  setup(host, { output_allowance, reservations }) {
    const window = { requests: reservations.requests, windowMs: parseDuration(reservations.window) }
    host.use({
      on: route => route.charge !== "none",
      needs: ["principal", "model", "plan"],
      provides: ["quote"],
      bounds: () =>
        `${reservations.requests} holds of a member in any ${reservations.window}, each for at most ${output_allowance} output tokens`,
      async run(call, next) {
        if (call.route.free?.(call) === true) return next()
        const { model } = call.get("model")
        const principal = call.get("principal")
        const body = await call.body()
        const demand = call.route.demand?.(body, call) ?? { stream: false }
        const quote = quoteFor(host, call, { card: cardOf(host, call), model, body, demand, output_allowance })
        const { card, counted, parameters, micros, least } = call.set("quote", quote)
        const detail = { model: model.name, kind: call.route.kind ?? model.type, route: call.route.path }
        const hold = await host.ledger.hold({ id: call.id, principal, micros, least, reservations: window, detail })
        call.onBill({
          settle(bill) {
            const full = filled(bill, counted)
            const tier = tierOf(bill.serviceTier ?? demand.serviceTier)
            const priced = host.price(card, { parameters, usage: full.usage, ...tier })
            if (priced.unpriced.length > 0) alarm(host, call, "usage_unpriced_total")
            const isUntold = priced.bound === "approximate" && priced.micros === 0
            if (isUntold && bill.missing !== true) alarm(host, call, "usage_missing_total")
            return hold.settle(priced, full)
          },
          release: () => hold.release(),
        })
        return next()
      },
    })
  },
} satisfies Plugin<Options>

const tierOf = (serviceTier: string | undefined) => (serviceTier === undefined ? {} : { serviceTier })

/** @throws GatewayError `price_missing` (500): before any upstream call, as the specification says */
const cardOf = (host: Host, call: Call): PriceCard => {
  const { asked, model } = call.get("model")
  const { name, overlay } = call.get("principal").identity.organisation
  const card = host.catalog.card(model, overlay)
  if (card !== undefined) return card
  const isGone = overlay !== undefined && !host.catalog.overlays.includes(overlay)
  const cause = isGone ? `the catalog has no overlay ${overlay}, whose prices organisation ${name} has` : undefined
  throw host.error("price_missing", `No price is configured for model '${asked}'`, { cause })
}

interface QuoteInput {
  readonly card: PriceCard
  readonly model: Model
  readonly body: Body
  readonly demand: Demand
  readonly output_allowance: number
}

/**
 * The size of a hold: the estimated input and an output allowance at the dearest row that may apply. `least` is what
 * must be there: the input and one token of output; everything, where the price is exact. Where that comes to nothing yet
 * (only the vendor will say what the call cost, or all of it rounds to no credit), that is one micro: an empty wallet buys
 * nothing but what is free.
 */
export const quoteFor = (
  host: Pick<Host, "price">,
  call: Pick<Call, "route">,
  { card, model, body, demand, output_allowance }: QuoteInput,
): Quote => {
  const parameters = parametersOf(model, body)
  const input = call.route.counts?.input?.(body) ?? estimatedInput(body.scan)
  const counted = countedBy(call.route, card, body, input)
  const estimated: Usage = { input, ...counted }
  const tier = tierOf(demand.serviceTier)
  const exact = call.route.charge === "acceptance"
  const some = exact || isFree(card) ? 0 : 1
  const cost = (output: number, dearest: boolean): number => {
    const usage = output === 0 ? estimated : { ...estimated, output }
    return Math.max(some, host.price(card, { parameters, usage, dearest, ...tier }).micros)
  }
  const generates = model.type === "llm" || model.type === "decision"
  const micros = cost(generates ? outputAllowance(model, demand, output_allowance) : 0, true)
  const least = exact ? micros : Math.min(micros, cost(generates ? 1 : 0, false))
  return { micros, least, card, parameters, estimated, counted }
}

/** Whatever is used of it. */
const isFree = ({ lines, when }: PriceCard): boolean =>
  lines.every(costsNothing) && when.every(row => row.lines.every(costsNothing))

const costsNothing = (line: PriceLine): boolean =>
  line.kind === "table" ? [...line.rows.values()].every(isNothing) : isNothing(line.rate)

const isNothing = ({ micros }: Rate): boolean => micros === 0n

const outputAllowance = ({ maxOutput }: Model, demand: Demand, allowance: number): number => {
  const most = Math.min(demand.maxOutput ?? allowance, maxOutput ?? allowance, allowance)
  const all = Math.max(0, Math.ceil(most)) * Math.max(1, Math.ceil(demand.choices ?? 1))
  return Math.min(all, Number.MAX_SAFE_INTEGER) // an infinite number of choices would be priced as 0
}

/** What the request tells of the buckets that the card has a line for; `input` may be an estimate. */
const countedBy = ({ counts }: Pick<Route, "counts">, { lines, when }: PriceCard, body: Body, input: number): Usage => {
  const counted: { [B in Bucket]?: number } = {}
  for (const line of when.length === 0 ? lines : [...lines, ...when.flatMap(row => row.lines)]) {
    const bucket = line.kind === "vendor_cost" ? undefined : line.bucket
    if (bucket === "input") counted.input = input
    else if (bucket !== undefined && counts?.[bucket] !== undefined) counted[bucket] = counts[bucket](body)
  }
  return counted
}

/** What was counted takes the place of what the vendor did not report. */
const filled = (bill: Bill, counted: Usage): Bill => {
  let usage = bill.usage
  for (const bucket in counted) {
    if (!isTold(bill.usage, bucket as Bucket)) usage = { ...usage, [bucket]: counted[bucket as Bucket] }
  }
  return usage === bill.usage ? bill : { ...bill, usage, source: "counted" }
}

/** Who reports tokens of any kind has told the input: it may have been none, or all of it from a cache. */
const isTold = (usage: Usage, bucket: Bucket): boolean =>
  bucket === "input" ? tokenBuckets.some(one => usage[one] !== undefined) : usage[bucket] !== undefined

const tokenBuckets = [...inputBuckets, ...outputBuckets]

const noParameters: Readonly<Record<string, unknown>> = Object.freeze({})

/** What the price tables of media ask for: the request's parameters over the model's defaults. */
const parametersOf = (model: Model, body: Body): Readonly<Record<string, unknown>> => {
  if (model.parameters === undefined) return noParameters
  const properties = (model.parameters.properties ?? {}) as Readonly<Record<string, JsonSchema>>
  const sent = body.json()
  const own = sent.parameters as Readonly<Record<string, unknown>> | undefined
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) => {
      const value = own?.[name] ?? sent[name] ?? schema.default
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** Something was used for nothing: the card has no line for it, or its only line is a cost that the vendor did not tell. */
const alarm = (host: Host, call: Call, metric: "usage_unpriced_total" | "usage_missing_total"): void => {
  const vendor = call.get("plan")[0]?.vendor ?? "other"
  host.metrics.product(metric).child(vendor, call.get("model").model.name).add()
}
