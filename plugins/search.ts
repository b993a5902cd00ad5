/** The native web-search family: search, contents and answer, relayed byte for byte below each of its prefixes. */

import type { Call, Host, Model, Plugin } from "../core/index.ts"

const family = "exa"
const methods = ["search", "contents", "answer"] as const
type Method = (typeof methods)[number]

const schema = { type: "object", properties: { stream: { type: ["boolean", "null"] } } } as const

export default {
  name: "search",
  api: 1,
  kind: "endpoint",
  setup(host) {
    for (const prefix of host.mounts("vendor-c")) {
      for (const method of methods) {
        host.route({
          method: "POST",
          path: `/${prefix}/${method}/`,
          access: "key",
          dialect: family,
          model: () => modelFor(host, method).name,
          accepts: {
            types: ["search"],
            wire: family,
            family,
            only: model => servesAt(model, method),
            otherwise: { code: "model_mismatch", message: "Model 'X' is not a search model" },
          },
          charge: "usage",
          limit: "common",
          schema,
          handle: call => relay(call, method),
        })
      }
    }
  },
} satisfies Plugin

const servesAt = ({ targets }: Model, method: Method): boolean => targets.some(({ model }) => model === method)

/**
 * No body names a model: the catalog's entry whose target is the path's last word serves the route.
 *
 * @throws GatewayError `not_found` (404): this deployment offers none
 */
const modelFor = ({ catalog, error }: Pick<Host, "catalog" | "error">, method: Method): Model => {
  const model = [...catalog.models.values()].find(
    one => one.type === "search" && one.family === family && servesAt(one, method),
  )
  if (model === undefined) throw error("not_found", "Not found")
  return model
}

/** `model` of an answer's body is the vendor's own word, never spliced. */
const relay = async (call: Call, method: Method) => {
  const streamed = (await call.body()).field("stream") === true
  return call.exchange(() => ({ verb: "relay", api: method, path: `/${method}`, streamed, splice: false }))
}
