/** What a request asks for, out of fields that nobody has checked. */

import type { Demand } from "../plugin.ts"

export interface AskedDemand {
  readonly stream: boolean
  /** Numbers; anything else was not asked for. */
  readonly maxOutput?: unknown
  readonly choices?: unknown
  /** A text; anything else was not asked for. */
  readonly serviceTier?: unknown
}

export const demandOf = ({ stream, maxOutput, choices, serviceTier }: AskedDemand): Demand => ({
  stream,
  ...(typeof maxOutput === "number" ? { maxOutput } : {}),
  ...(typeof choices === "number" ? { choices } : {}),
  ...(typeof serviceTier === "string" ? { serviceTier } : {}),
})
