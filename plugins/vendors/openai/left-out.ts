/**
 * Fields that some hosts of this wire refuse, and without which an answer still is the answer: the vendor's option
 * `leave_out` names them. Whatever else a host refuses, it refuses to the client.
 */

import type { JsonSchema, Vendor } from "../../../core/index.ts"

/** `stream_options`: where usage comes with every stream, and must not be asked for. */
const names = ["stream_options", "parallel_tool_calls", "user"]

export const leaveOutOption: JsonSchema = { type: "array", items: { enum: names } }

export const withoutLeftOut = (request: Readonly<Record<string, unknown>>, { options }: Vendor) => {
  const left: readonly unknown[] = Array.isArray(options.leave_out) ? options.leave_out : []
  return Object.fromEntries(Object.entries(request).filter(([name]) => !left.includes(name)))
}
