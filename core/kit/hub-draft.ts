/** What every draft of a chat request through a spoke has in common, whichever route asked for it. */

import type { ChatContext, ChatRequest, ChatSpoke } from "../adapter.ts"
import type { Draft } from "../plugin.ts"
import { withoutEffort } from "./effort.ts"

/**
 * @param again the draft of the request without the effort that the vendor refused beside tools
 * @returns the fields of the draft, and the spoke's memo for the way back
 */
export const hubDraft = (
  spoke: ChatSpoke,
  request: ChatRequest,
  context: ChatContext,
  again: (changed: ChatRequest) => Draft,
) => {
  const { path, body, headers, memo } = spoke.request(request, context)
  const base = {
    api: spoke.api,
    path,
    body: JSON.stringify(body),
    ...(headers === undefined ? {} : { headers }),
    retry: (fault: { readonly message: string; readonly param?: string }) => {
      const changed = withoutEffort(request, context.rules, fault)
      return changed === undefined ? undefined : again(changed)
    },
  }
  return { base, memo }
}
