/**
 * Any other HTTP or WebSocket API: relayed, metered as requests. The vendor's `options` say what its API needs beyond
 * the common fields:
 *
 *   options: { auth: { field: x-api-key, prefix: "" }, to_vendor: [x-team], to_client: [x-took] }
 */

import {
  type Adapter,
  type AllowedFields,
  type Api,
  type Fault,
  plainDialect,
  type UsageReader,
  type Vendor,
} from "../../core/index.ts"
import { faultOf, kindOf } from "./common/faults.ts"

interface Options {
  readonly auth?: { readonly field?: string; readonly prefix?: string }
  readonly to_vendor?: readonly string[]
  readonly to_client?: readonly string[]
}

/** RFC 9110 section 5.1; a trailing `*` in a list of names matches a prefix. */
const token = "[A-Za-z0-9!#$%&'+.^_`|~-]+"
const fieldNames = { type: "array", items: { type: "string", pattern: `^${token}[*]?$` } }

const optionsOf = (vendor: Vendor): Options => vendor.options as Options

/** One request is one request, whatever comes back. An error answer is passed on, and costs nothing. */
class RequestMeter implements UsageReader {
  whole(): void {}
  event(): void {}
  report() {
    return { usage: { requests: 1 }, outputBytes: 0 }
  }
}

const api: Api = { usage: () => new RequestMeter(), sign: () => ({ sign: "content" }) }

/** "Not modified" is the client's to read; a redirect is not followed, and becomes 400. Credentials and outages are ours. */
const fault = (status: number): Fault => faultOf({ kind: status < 400 ? "invalid" : kindOf(status), status })

const moreFields = (vendor: Vendor): Partial<AllowedFields> => {
  const { to_vendor, to_client } = optionsOf(vendor)
  return { toVendor: to_vendor ?? [], toClient: to_client ?? [] }
}

export default {
  name: "http",
  dialect: plainDialect("http"),
  fields: {
    toVendor: ["accept", "accept-language", "content-type", "if-match", "if-none-match", "if-modified-since", "range"],
    toClient: [
      "accept-ranges",
      "cache-control",
      "content-disposition",
      "content-language",
      "content-range",
      "content-type",
      "etag",
      "expires",
      "last-modified",
      "retry-after",
      "vary",
    ],
    query: ["*"],
  },
  moreFields,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      auth: {
        type: "object",
        additionalProperties: false,
        properties: { field: { type: "string", pattern: `^${token}$` }, prefix: { type: "string" } },
      },
      to_vendor: fieldNames,
      to_client: fieldNames,
    },
  },
  authorise: (secret, vendor) => {
    const { field = "authorization", prefix = "Bearer " } = optionsOf(vendor).auth ?? {}
    return { [field.toLowerCase()]: `${prefix}${secret.reveal()}` }
  },
  apis: { any: api },
  fault,
} satisfies Adapter
