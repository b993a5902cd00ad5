/** `POST /guard/`: is a text or an image harmful? In the moderation shape, with one word for all results on top. */

import {
  answerId,
  type Call,
  type ChatContext,
  createdNow,
  type Draft,
  type Host,
  isUploadUrl,
  list,
  type Plugin,
  record,
  refuseStoredIds,
  type StoredIds,
  sendDraft,
  spokeContext,
  spokeOf,
  type Target,
} from "../../core/index.ts"
import { guardAnswer, guardRequest } from "./chat.ts"

const part = { type: "object", required: ["type"], properties: { type: { enum: ["text", "image_url"] } } }

const schema = {
  type: "object",
  required: ["model", "input"],
  properties: {
    model: { type: "string" },
    input: {
      type: ["string", "array"],
      minLength: 1,
      minItems: 1,
      maxItems: 2048,
      anyOf: [{ type: "string" }, { items: { type: "string" } }, { items: part }],
    },
  },
} as const

/** Images in the vendor's account are somebody else's. */
const storedIds: StoredIds = {
  suspects: ["image_url"],
  field: ({ input }) =>
    list(input).some(one => isUploadUrl(record(record(one).image_url).url)) ? "image_url" : undefined,
}

export default {
  name: "guard",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/guard/",
      access: "key",
      dialect: "openai",
      model: "body",
      accepts: {
        types: ["guard"],
        servedBy: ({ chat, moderation }, { capabilities }) =>
          moderation !== undefined || (capabilities.includes(byChat) && chat !== undefined),
        otherwise: { code: "model_not_found", message: "Model 'X' not found" },
      },
      charge: "usage",
      limit: "common",
      schema,
      finds: storedIds.suspects,
      parts: { types: { image_url: "image" } },
      handle: call => judge(host, call),
    })
  },
} satisfies Plugin

/** A guard with this capability is an LLM, called by chat; any other has an API of its own. */
const byChat = "chat"

const judge = async (host: Host, call: Call) => {
  const body = await call.body()
  refuseStoredIds(host, call, body, storedIds)
  const request = body.json()
  const { model } = call.get("model")
  const id = answerId("modr-", call)
  const created = createdNow(host)
  return call.exchange((target: Target): Draft => {
    const adapter = host.adapterOf(target.vendor)
    const { chat } = adapter
    const context: ChatContext = { ...spokeContext(host, model, target), id, created, includeUsage: false }
    const written = (answer: Readonly<Record<string, unknown>>) => {
      const results = answer.results as readonly { readonly flagged?: unknown }[]
      return { flagged: results.some(result => result.flagged === true), id, ...answer, model: model.name }
    }
    if (model.capabilities.includes(byChat) && chat !== undefined) {
      const { memo, ...sent } = guardRequest(chat, request.input, context)
      return sendDraft(chat.api, sent, body => written(guardAnswer(chat, body, context, memo)))
    }
    const moderation = spokeOf(adapter, "moderation")
    const sent = moderation.request(request, context)
    return sendDraft(moderation.api, sent, body => written(moderation.whole(body, context)))
  })
}
