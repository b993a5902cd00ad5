/** `POST /chat/completions/`: the OpenAI-compatible request for every text model of the catalog. */

import {
  answerId,
  type Body,
  type Call,
  type ChatRequest,
  createdNow,
  type Demand,
  type Draft,
  demandOf,
  type Host,
  type Plugin,
  refuseStoredIds,
  signatureStore,
  spokeContext,
  type Target,
} from "../../core/index.ts"
import { chatDraft } from "./draft.ts"
import { storedIds } from "./foreign.ts"
import { withImageUrls } from "./images.ts"
import { Reasoning } from "./reasoning.ts"
import { applyRules } from "./rules.ts"
import { chatSchema, checkValues } from "./schema.ts"

export default {
  name: "chat",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/chat/completions/",
      access: "key",
      dialect: "openai",
      model: "body",
      accepts: {
        types: ["llm"],
        servedBy: adapter => adapter.chat !== undefined,
        otherwise: { code: "model_not_found", message: "invalid_request_error - Model 'X' not found" },
      },
      charge: "usage",
      limit: "common",
      schema: chatSchema,
      finds: storedIds.suspects,
      parts: { types: { image_url: "image", image: "image", input_audio: "file", file: "file" } },
      demand: (body, call) => demand(body, isToldTier(host, call)),
      handle: call => complete(host, call),
    })
  },
} satisfies Plugin

/** Only the hub's own wire has a word for tiers; what no vendor is asked for is not charged. */
const isToldTier = (host: Host, call: Call): boolean =>
  call.get("plan").every(({ vendor }) => host.adapterOf(vendor).chat?.stream === undefined)

const demand = (body: Body, toldTier: boolean): Demand =>
  demandOf({
    stream: body.field("stream") === true,
    maxOutput: body.field("max_completion_tokens") ?? body.field("max_tokens"),
    choices: body.field("n"),
    serviceTier: toldTier ? body.field("service_tier") : undefined,
  })

const complete = async (host: Host, call: Call) => {
  const body = await call.body()
  const sent = body.json() as ChatRequest
  checkValues(sent)
  refuseStoredIds(host, call, body, storedIds)
  const { model } = call.get("model")
  const reasoning = model.rules.reasoning_back === true ? new Reasoning(host, call) : undefined
  const mapsEfforts = call.get("plan").every(({ vendor }) => host.adapterOf(vendor).chat?.mapsEfforts === true)
  const ruled = applyRules(withImageUrls(sent), model, mapsEfforts)
  const request = (await reasoning?.putBack(ruled)) ?? ruled
  const { stream_options } = sent as { readonly stream_options?: { readonly include_usage?: boolean } | null }
  const told = {
    id: answerId("chatcmpl-", call),
    created: createdNow(host),
    includeUsage: stream_options?.include_usage === true,
  }
  const signatures = signatureStore(host, call)
  return call.exchange(async (target: Target): Promise<Draft> => {
    const adapter = host.adapterOf(target.vendor)
    // Only a translated wire has signatures that the hub's own does not carry.
    const known = adapter.chat?.stream === undefined ? undefined : await signatures.find(request)
    const makeContext = () => ({
      ...told,
      ...spokeContext(host, model, target),
      ...(known === undefined ? {} : { signatures: known }),
      keep: signatures.keep,
    })
    return chatDraft({ adapter, makeContext, reasoning }, request)
  })
}
