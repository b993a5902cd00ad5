/** Header fields and query parameters cross in both directions by the adapter's allow-list, prebuilt at load. */

import type { IncomingHttpHeaders } from "node:http"
import type { Adapter } from "../adapter.ts"
import { credentialFields } from "../kit/credentials.ts"
import type { Vendor } from "../offer.ts"
import type { Fields } from "./upstream.ts"

export interface FieldFilter {
  /** The client's fields that the vendor may see: name, value, name, value ... */
  toVendor(headers: IncomingHttpHeaders, out: string[]): void
  /** The fields of a request of our own: what the vendor demands, and the sandbox's wishes. */
  own(headers: IncomingHttpHeaders, out: string[]): void
  /** The vendor's fields that the client may see; a value that holds the secret used is dropped. */
  toClient(fields: Fields, secret: string, out: string[]): void
  /** `?a=b` or "". */
  query(client: URLSearchParams | undefined, own: Readonly<Record<string, string>> | undefined): string
}

/** Fields that concern one connection or the framing; no adapter can let them through (RFC 9110 section 7.6.1). */
const neverCross: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "host",
  "cookie",
  "set-cookie",
  ...credentialFields,
  "accept-encoding",
  "forwarded",
])

/** Adds named fields to a head as Node takes it: name, value, name, value ... */
export const pushFields = (out: string[], fields: Readonly<Record<string, string>> | undefined): void => {
  for (const name in fields) out.push(name, fields[name] as string)
}

/** The fields that every head carries, whether or not its request met a route: that of a stray took no time to speak of. */
export const everyHead = (id: string, sandbox: boolean, gatewayMs = 0, upstreamMs = 0): string[] => [
  "x-request-id",
  id,
  "server-timing",
  `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`,
  ...(sandbox ? ["x-sandbox", "true"] : []),
]

/** What Node takes as a field value: the rest would throw where the head is written. */
const isWritable = (value: string): boolean => !/[^\t\x20-\x7e\x80-\xff]/.test(value)

const allowed = (names: readonly string[], extra: readonly string[]): { exact: string[]; prefixes: string[] } => {
  const wanted = [...new Set([...names, ...extra].map(name => name.toLowerCase()))]
  return {
    exact: wanted.filter(name => !name.endsWith("*") && !neverCross.has(name)),
    prefixes: wanted.filter(name => name.endsWith("*")).map(name => name.slice(0, -1)),
  }
}

export const compileFields = (adapter: Adapter, vendor: Vendor, sandbox: boolean): FieldFilter => {
  const more = adapter.moreFields?.(vendor) ?? {}
  const ours = sandbox ? ["content-type", "x-sandbox-fault"] : ["content-type"]
  const toVendor = allowed([...adapter.fields.toVendor, ...(more.toVendor ?? [])], ours)
  const toClient = allowed([...adapter.fields.toClient, ...(more.toClient ?? [])], ["content-type"])
  const clientExact = new Set(toClient.exact)
  const queryNames = new Set([...adapter.fields.query, ...(more.query ?? [])])
  const everyQuery = queryNames.has("*")
  const defaults = Object.entries(adapter.defaults ?? {})

  const mayReach = (name: string): boolean =>
    clientExact.has(name) ||
    (toClient.prefixes.length > 0 && !neverCross.has(name) && toClient.prefixes.some(prefix => name.startsWith(prefix)))

  return {
    toVendor(headers, out) {
      for (const name of toVendor.exact) {
        const value = headers[name]
        if (value !== undefined) out.push(name, Array.isArray(value) ? value.join(", ") : value)
      }
      for (const prefix of toVendor.prefixes) {
        for (const name in headers) {
          if (name.startsWith(prefix) && !neverCross.has(name)) out.push(name, String(headers[name]))
        }
      }
      for (const [name, value] of defaults) if (headers[name] === undefined) out.push(name, value)
    },
    own(headers, out) {
      out.push("content-type", "application/json")
      const fault = sandbox ? headers["x-sandbox-fault"] : undefined
      if (fault !== undefined) out.push("x-sandbox-fault", String(fault))
      for (const [name, value] of defaults) out.push(name, value)
    },
    toClient(fields, secret, out) {
      for (const name in fields) {
        if (!mayReach(name)) continue
        const value = fields[name]
        if (value === undefined) continue
        const text = Array.isArray(value) ? value.join(", ") : value
        if ((secret === "" || !text.includes(secret)) && isWritable(text)) out.push(name, text)
      }
    },
    query(client, own) {
      if (client === undefined && own === undefined) return ""
      const out = new URLSearchParams()
      if (client !== undefined) {
        for (const [name, value] of client) if (everyQuery || queryNames.has(name)) out.append(name, value)
      }
      for (const name in own) out.set(name, own[name] as string)
      const text = out.toString()
      return text === "" ? "" : `?${text}`
    },
  }
}
