/** Usage as its contract promises it, whoever wrote the adapter, the endpoint or the step that tells it. */

import type { Usage } from "../offer.ts"

const isQuantity = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value) && value >= 0

/**
 * Without what is no finite number from 0 up: a store can neither write nor sum it, and its charge would wait for ever.
 * The same object when all of it is sound.
 */
export const soundUsage = (usage: Usage): Usage => {
  for (const name in usage) if (!isQuantity(usage[name as keyof Usage])) return withoutOdd(usage)
  return usage
}

const withoutOdd = (usage: Usage): Usage =>
  Object.fromEntries(Object.entries(usage).filter(([, value]) => isQuantity(value)))
