/** A chat request as a request of the generate-content wire. */

import type { ChatContext, ChatRequest, JsonObject, SpokeRequest } from "../../../../core/index.ts"
import { checkFields } from "../../common/chat-fields.ts"
import { type Abilities, abilitiesOf } from "./abilities.ts"
import { fields } from "./fields.ts"
import { formatOf } from "./format.ts"
import { conversationOf } from "./messages.ts"
import { originalsOf, toolNames } from "./names.ts"
import { samplingOf } from "./sampling.ts"
import { thinkingOf } from "./thinking.ts"
import { toolsOf } from "./tools.ts"

/** @throws GatewayError `invalid_request` (400) naming the field that this wire or this model cannot express */
export const generateRequest = (request: ChatRequest, context: ChatContext): SpokeRequest => {
  checkFields(request, fields)
  const names = toolNames(request)
  const abilities = abilitiesOf(context)
  const config = configOf(request, context, abilities)
  const conversation = conversationOf(request.messages, {
    ...context,
    names,
    media: { fileUrls: abilities.fileUrls, sharedIds: context.vendor.sharedIds },
    needsSignature: abilities.byLevel,
  })
  const body = {
    ...conversation,
    ...toolsOf(request, names, abilities),
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
  }
  return { path: pathOf(request, context), body, memo: originalsOf(names) }
}

const configOf = (request: ChatRequest, context: ChatContext, abilities: Abilities): JsonObject => {
  const thinkingConfig = thinkingOf(request, context, abilities)
  return {
    ...samplingOf(request, context.model),
    ...formatOf(request, abilities),
    ...(thinkingConfig === undefined ? {} : { thinkingConfig }),
  }
}

/** Without `alt` the stream would be one JSON array. */
const pathOf = ({ stream }: ChatRequest, { target }: ChatContext): string => {
  const model = `/v1beta/models/${encodeURIComponent(target.model)}`
  return stream === true ? `${model}:streamGenerateContent?alt=sse` : `${model}:generateContent`
}
