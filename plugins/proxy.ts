/**
 * Any other HTTP or WebSocket API under a path of ours, by YAML alone, with the gateway's own keys, limits and a flat
 * price: `- proxy: { path: /tools/x/, vendor: x, price: 2, limit: common }`. One line for each API.
 */

import { type Call, flatCard, type Host, type Method, type Model, type Plugin, type Route } from "../core/index.ts"

interface Options {
  readonly path: string
  readonly vendor: string
  /** Credits for each request that is answered, and for each WebSocket that opens; 0 is free. */
  readonly price?: number
  readonly limit?: string
  readonly dialect?: string
}

const methods: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"]

export default {
  name: "proxy",
  api: 1,
  options: {
    type: "object",
    additionalProperties: false,
    required: ["path", "vendor"],
    properties: {
      path: { type: "string", pattern: "^/([A-Za-z0-9._-]+/)+$", examples: ["/tools/weather/"] },
      vendor: { type: "string" },
      price: { type: "number", minimum: 0 },
      limit: { type: "string" },
      dialect: { type: "string" },
    },
  },
  setup(host, options) {
    const { path, vendor, limit = "common", dialect = "plain" } = options
    const unset = host.catalog.left.vendors.get(vendor)
    if (unset !== undefined) {
      host.log.warn({ path, vendor, unset }, "left out: the vendor has no secret")
      return
    }
    const charged = (options.price ?? 0) > 0
    const shape = {
      access: "key",
      dialect,
      model: "none",
      // A request that may have been received is never sent again: nobody knows what it does.
      charge: charged ? "acceptance" : "none",
      limit,
      kind: "proxy",
      raw: true,
      fixed: offer(host, options),
    } as const satisfies Partial<Route>
    for (const place of [path, `${path}{rest+}`]) {
      for (const method of methods)
        host.route({ ...shape, method, path: place, handle: call => relay(call, path, method) })
      host.route({ ...shape, method: "GET", path: place, upgrade: true, handle: call => tunnel(call, path) })
    }
  },
} satisfies Plugin<Options>

/** What the ledger and the metrics call it. */
const offer = (host: Host, { path, vendor, price = 0 }: Options): Model => {
  if (!host.catalog.vendors.has(vendor)) throw new Error(`proxy ${path}: there is no vendor ${vendor}`)
  return {
    name: `proxy${path.replaceAll("/", ".").replace(/\.$/, "")}`,
    type: "search",
    family: vendor,
    targets: [{ vendor, model: "" }],
    created: 0,
    rules: {},
    messages: false,
    offered: true,
    capabilities: [],
    aliases: [],
    price: flatCard(price),
  }
}

/** The client's own bytes of the path: the router took no dot segments and no empty ones. */
const below = (call: Call, path: string): string => `/${call.path.slice(path.length)}`

const relay = (call: Call, path: string, method: Method) =>
  call.exchange(() => ({ verb: "relay", api: "any", path: below(call, path), streamed: false, method, splice: false }))

const tunnel = (call: Call, path: string) => {
  const [target] = call.get("plan")
  return call.tunnel(target!, below(call, path))
}
