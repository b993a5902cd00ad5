/** The money metrics, with their children kept: in credits, by model. */

import { credits } from "../catalog/credits.ts"
import type { Metrics } from "../plugin.ts"

const kinds = ["held", "settled", "released", "refunded", "shortfall"] as const
type Kind = (typeof kinds)[number]
type Children = Readonly<Record<Kind, { add(value?: number): void }>>

export const moneyMeters = (metrics: Metrics) => {
  const family = metrics.product("credits_total")
  const byModel = new Map<string, Children>()

  const childrenOf = (model: string): Children => {
    const known = byModel.get(model)
    if (known !== undefined) return known
    const made = Object.fromEntries(kinds.map(kind => [kind, family.child(kind, model)])) as unknown as Children
    byModel.set(model, made)
    return made
  }

  return {
    count(kind: Kind, model: string, micros: number): void {
      if (micros > 0) childrenOf(model)[kind].add(credits(micros))
    },
    holds: metrics.product("ledger_holds").child(),
    oldest: metrics.product("ledger_hold_age_seconds_max").child(),
    lapsed: metrics.product("ledger_lapsed_total").child(),
  }
}

export type MoneyMeters = ReturnType<typeof moneyMeters>
