/** What translations of whole answers have in common. */

import { GatewayError, type JsonSchema, type Vendor } from "../../../core/index.ts"
import { type Json, parse, record } from "./json.ts"

/** @throws GatewayError `upstream_unreadable` (502), to be thrown where an answer is not what its wire promises */
export const unreadable = (): GatewayError =>
  new GatewayError("upstream_unreadable", "The model's vendor sent an answer that cannot be read")

/** The answer as an object, whatever it is. */
export const answerIn = (body: Buffer): Json => record(parse(body))

/** The API lies below `/v1`, or below the `api_path` of the vendor's options (`""` for none). */
export const apiPath = ({ options }: Vendor, usual = "/v1"): string =>
  typeof options.api_path === "string" ? options.api_path : usual

/** The options of adapters that ask for it. */
export const apiPathOptions: JsonSchema = {
  type: "object",
  additionalProperties: false,
  properties: { api_path: { type: "string", pattern: "^(/[A-Za-z0-9._~-]+)*$" } },
}

/** Those of the fields that the request has. */
export const picked = (request: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    names.flatMap(name => (request[name] === undefined || request[name] === null ? [] : [[name, request[name]]])),
  )
