/** `POST /responses/`: a relay to the Responses API, where answers are stored in an account that all members share. */

import {
  apiPath,
  type Body,
  type Call,
  type Demand,
  type Draft,
  demandOf,
  type Host,
  isSet,
  type Plugin,
  refuseStoredIds,
  sharesIds,
} from "../../core/index.ts"
import { storedIds } from "./foreign.ts"
import { originOf, remember } from "./stored.ts"

const schema = {
  type: "object",
  required: ["model"],
  properties: {
    model: { type: "string" },
    stream: { type: ["boolean", "null"] },
    max_output_tokens: { type: ["integer", "null"] },
  },
} as const

export default {
  name: "responses",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/responses/",
      access: "key",
      dialect: "openai-responses",
      model: "body",
      accepts: {
        types: ["llm"],
        wire: "openai",
        family: "openai",
        otherwise: { code: "model_mismatch", message: "Model 'X' is not an OpenAI Responses model" },
      },
      charge: "usage",
      limit: "common",
      schema,
      finds: storedIds.suspects,
      parts: { types: { input_image: "image", input_audio: "file", input_file: "file" } },
      demand,
      handle: call => respond(host, call),
    })
  },
} satisfies Plugin

const demand = (body: Body): Demand =>
  demandOf({
    stream: body.field("stream") === true,
    maxOutput: body.field("max_output_tokens"),
    serviceTier: body.field("service_tier"),
  })

const respond = async (host: Host, call: Call) => {
  const body = await call.body()
  const background = body.field("background")
  if (isSet(background) && background !== false) {
    throw host.error("invalid_request", "background: true is not supported: its usage cannot be seen", {
      param: "background",
    })
  }
  refuseStoredIds(host, call, body, storedIds)
  const origin = sharesIds(host, call) ? undefined : await originOf(host, call, body)
  return call.exchange((target): Draft => {
    const vendor = host.catalog.vendors.get(target.vendor)!
    return {
      verb: "relay",
      api: "responses",
      path: `${apiPath(vendor)}/responses`,
      streamed: body.field("stream") === true,
      // An empty name is no secret's: a target of another vendor is passed over.
      ...(origin === undefined ? {} : { secret: origin.vendor === vendor.name ? origin.secret : "" }),
      ...(body.field("store") === false ? {} : { seen: (id, attempt) => remember(host, call, id, attempt) }),
    }
  })
}
