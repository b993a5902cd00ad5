/** The native messages family: messages, token counting and its own model list, below each of its prefixes. */

import {
  type Body,
  type Call,
  type Demand,
  type Draft,
  demandOf,
  type Host,
  type Plugin,
  type Route,
  refuseStoredIds,
  usableModels,
} from "../../core/index.ts"
import { countInput } from "./count.ts"
import { translatedDraft } from "./draft.ts"
import { storedIds, uploads } from "./foreign.ts"
import { checkValues } from "./hub/index.ts"
import { family, messagesModels, pageOf } from "./list.ts"
import { naming, refuseOtherModels } from "./named.ts"

const adapterName = "anthropic"

const shared = { access: "key", dialect: "anthropic", limit: "common" } as const satisfies Partial<Route>

const reading = {
  method: "POST",
  model: "body",
  finds: [...storedIds.suspects, ...uploads.suspects, ...naming],
  // Looked into on the way to the vendor: a second one would be what the vendor reads.
  reads: ["speed", "container", "thread", "diagnostics", "fallbacks", "tools"],
  parts: { types: { image: "image", document: "file" } },
} as const satisfies Partial<Route>

const fields = { model: { type: "string" }, stream: { type: "boolean" }, max_tokens: { type: "integer" } }
const schema = { type: "object", required: ["model"], properties: fields } as const
const countSchema = { type: "object", required: ["model"], properties: { model: fields.model } } as const

export default {
  name: "messages",
  api: 1,
  kind: "endpoint",
  setup(host) {
    for (const prefix of host.mounts("vendor-a")) {
      host.route({
        ...shared,
        ...reading,
        path: `/${prefix}/v1/messages/`,
        accepts: {
          types: ["llm"],
          wire: adapterName,
          family,
          offered: model => model.messages,
          otherwise: { code: "model_mismatch", message: "Model 'X' is not an Anthropic model" },
        },
        charge: "usage",
        schema,
        demand,
        handle: call => answer(host, call),
      })
      host.route({
        ...shared,
        ...reading,
        path: `/${prefix}/v1/messages/count_tokens/`,
        accepts: {
          types: ["llm"],
          wire: adapterName,
          family,
          offered: model => model.rules.responses_only !== true,
          otherwise: { code: "model_not_found", message: "Model 'X' not found" },
        },
        charge: "none",
        schema: countSchema,
        handle: call => countTokens(host, call),
      })
      host.route({
        ...shared,
        method: "GET",
        path: `/${prefix}/v1/models/`,
        model: "none",
        charge: "none",
        handle: async call => {
          const usable = usableModels(host.catalog.models, call.get("principal").identity.organisation)
          return call.reply(200, pageOf(messagesModels(usable), call.query))
        },
      })
    }
  },
} satisfies Plugin

const demand = (body: Body, call: Call): Demand =>
  demandOf({
    stream: body.field("stream") === true,
    maxOutput: body.field("max_tokens"),
    // A model of another family is not told the tier: what no vendor is asked for is not charged.
    serviceTier: isOwn(call) ? tierIn(body) : undefined,
  })

const tierIn = (body: Body): unknown => (body.field("speed") === "fast" ? "fast" : body.field("service_tier"))

const isOwn = (call: Call): boolean => call.get("model").model.family === family

/** The family's own models are relayed; others that are offered here go through the hub. */
const answer = async (host: Host, call: Call) => {
  if (isOwn(call)) return relay(host, call, "messages", "/v1/messages")
  refuseStoredIds(host, call, await call.body(), uploads)
  return call.exchange(target => translatedDraft(host, call, target))
}

const relay = async (host: Host, call: Call, api: string, path: string) => {
  const body = await call.body()
  refuseStoredIds(host, call, body, storedIds)
  refuseOtherModels(host, call, body)
  const streamed = api === "messages" && body.field("stream") === true
  return call.exchange((): Draft => ({ verb: "relay", api, path, streamed }))
}

/** A model that another wire serves is counted here, by a tokenizer. */
const countTokens = async (host: Host, call: Call) => {
  const allRelay = call.get("plan").every(target => host.adapterOf(target.vendor).name === adapterName)
  if (allRelay) return relay(host, call, "count_tokens", "/v1/messages/count_tokens")
  const request = (await call.body()).json()
  checkValues(request, ["messages"])
  return call.reply(200, { input_tokens: await countInput(request) })
}
