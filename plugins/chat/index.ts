/** `POST /chat/completions/`: the OpenAI-compatible request for every text model of the catalog. */

import {
  type Body,
  type Call,
  type ChatRequest,
  type Demand,
  type Draft,
  type Host,
  type Plugin,
  signatureStore,
  type Target,
} from "../../core/index.ts"
import { chatDraft } from "./draft.ts"
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
        otherwise: { code: "model_not_found", message: "invalid_request_error - Model 'X' not found" },
      },
      charge: "usage",
      limit: "common",
      schema: chatSchema,
      parts: { types: { image_url: "image", input_audio: "file", file: "file" } },
      demand,
      handle: call => complete(host, call),
    })
  },
} satisfies Plugin

const demand = (body: Body): Demand => {
  const number = (name: string): number | undefined => {
    const value = body.field(name)
    return typeof value === "number" ? value : undefined
  }
  const maxOutput = number("max_completion_tokens") ?? number("max_tokens")
  const choices = number("n")
  const tier = body.field("service_tier")
  return {
    stream: body.field("stream") === true,
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(choices === undefined ? {} : { choices }),
    ...(typeof tier === "string" ? { serviceTier: tier } : {}),
  }
}

const complete = async (host: Host, call: Call) => {
  const sent = (await call.body()).json() as ChatRequest
  checkValues(sent)
  const { model } = call.get("model")
  const request = applyRules(sent, model)
  const { stream_options } = sent as { readonly stream_options?: { readonly include_usage?: boolean } | null }
  const told = {
    model,
    rules: model.rules,
    id: `chatcmpl-${call.id.replaceAll("-", "")}`,
    created: Math.floor(host.clock.now() / 1000),
    includeUsage: stream_options?.include_usage === true,
  }
  const signatures = signatureStore(host, call)
  return call.exchange(async (target: Target): Promise<Draft> => {
    const adapter = host.adapterOf(target.vendor)
    const vendor = host.catalog.vendors.get(target.vendor)!
    // What the hub's own wire carries by itself is not kept, but for reasoning that clients drop.
    const isKept = adapter.chat?.stream !== undefined || model.rules.reasoning_back === true
    const known = isKept ? await signatures.find(request) : undefined
    return chatDraft(adapter, request, () => ({
      ...told,
      target,
      vendor,
      ...(known === undefined ? {} : { signatures: known }),
      keep: signatures.keep,
    }))
  })
}
