/** A price that depends on nothing: so much for each request. */

import type { PriceCard } from "../offer.ts"
import { micros } from "./credits.ts"

/** @throws RangeError when `credits` is no amount of credits */
export const flatCard = (credits: number): PriceCard => ({
  lines: [
    {
      kind: "rate",
      item: "requests",
      bucket: "requests",
      rate: { micros: BigInt(micros(credits)), per: 1n },
      text: `${credits} per requests`,
    },
  ],
  when: [],
  round: "micro",
  digest: `flat-${micros(credits)}`,
})
