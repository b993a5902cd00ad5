/** Some models refuse effort together with tools: then the call is tried once more, without it (specification 4.2). */

import type { ChatRequest, Fault, Rules } from "../../core/index.ts"

const field = "reasoning_effort"

/**
 * What to retry with when effort with tools was refused: the value that the catalog names (some models think by default
 * and must be told not to), else no effort. `undefined` when that was not the reason, or when nothing would change.
 */
export const withoutEffort = (
  request: ChatRequest,
  { effort_with_tools: instead = "drop" }: Rules,
  fault: Pick<Fault, "message" | "param">,
): ChatRequest | undefined => {
  const hasTools = Array.isArray(request.tools) && request.tools.length > 0
  if (!hasTools || (fault.param !== field && !fault.message.includes(field))) return undefined
  const { [field]: effort, ...rest } = request
  if (instead !== "drop") return effort === instead ? undefined : { ...request, [field]: instead }
  return effort === undefined || effort === null ? undefined : (rest as ChatRequest)
}
