/**
 * Ids of calls: UUID version 7 (RFC 9562), because a ledger that inserts them in order touches one page of its index
 * where random ones touch as many as there are rows in a group.
 */

import { randomFillSync } from "node:crypto"

const idBytes = 10
const pool = Buffer.allocUnsafe(idBytes * 1024)
let used = pool.length

let millisecond = Number.NaN
let prefix = ""

/** @param now Unix milliseconds */
export const callId = (now: number): string => {
  if (now !== millisecond) {
    millisecond = now
    const hex = Math.floor(now).toString(16).padStart(12, "0")
    prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
  }
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  pool[used + 2] = ((pool[used + 2] as number) & 0x3f) | 0x80 // the variant of RFC 9562
  const random = pool.toString("hex", used, used + idBytes)
  used += idBytes
  return `${prefix}${random.slice(1, 4)}-${random.slice(4, 8)}-${random.slice(8, 20)}`
}
