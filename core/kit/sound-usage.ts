/** Usage as its contract promises it, whoever wrote the adapter, the endpoint or the step that tells it. */

import type { Usage } from "../offer.ts"

/** Beyond the exact numbers it is a fault and no count, and a few of them would make every sum infinite. */
const isQuantity = (value: unknown): boolean =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER

/**
 * Without what is no number from 0 to 2^53: a store can neither write nor sum it, and its charge would wait for ever.
 * The same object when all of it is sound.
 */
export const soundUsage = (usage: Usage): Usage => {
  for (const name in usage) if (!isQuantity(usage[name as keyof Usage])) return withoutOdd(usage)
  return usage
}

const withoutOdd = (usage: Usage): Usage =>
  Object.fromEntries(Object.entries(usage).filter(([, value]) => isQuantity(value)))
