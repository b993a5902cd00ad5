/** A price card as clients see it, in `GET /models/{model}/`. */

import { microsPerCredit, type PriceCard, type PriceCondition, type PriceLine, type Rate } from "../offer.ts"
import { approximate } from "./exact.ts"

/** The card's lines as plain JSON: credits for one unit (or for each row of a table), and the rate in words. */
export const describePrice = (card: PriceCard): Record<string, unknown> => ({
  unit: "credits",
  round: card.round,
  lines: card.lines.map(describeLine),
  ...(card.when.length === 0 ? {} : { when: card.when.map(describeRow) }),
})

const describeRow = (row: PriceCard["when"][number]): Record<string, unknown> => ({
  if: describeCondition(row.if),
  ...(row.times === undefined ? {} : { times: approximate(row.times) }),
  ...(row.lines.length === 0 ? {} : { lines: row.lines.map(describeLine) }),
})

const describeCondition = ({ prompt, service_tier }: PriceCondition): Record<string, unknown> => ({
  ...(prompt === undefined ? {} : { prompt: `${prompt.operator} ${prompt.tokens}` }),
  ...(service_tier === undefined ? {} : { service_tier }),
})

const describeLine = (line: PriceLine): Record<string, unknown> =>
  line.kind === "table"
    ? {
        item: line.item,
        basis: line.text,
        rows: [...line.rows].map(([values, rate]) => describeCell(line.keys, values, rate)),
      }
    : { item: line.item, basis: line.text, credits: creditsOf(line.rate) }

const describeCell = (keys: readonly string[], values: string, rate: Rate): Record<string, unknown> => {
  const each = values.split("\n")
  return { ...Object.fromEntries(keys.map((key, index) => [key, each[index]])), credits: creditsOf(rate) }
}

const creditsOf = (rate: Rate): number => Number(rate.micros) / (Number(rate.per) * microsPerCredit)
