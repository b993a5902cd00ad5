/**
 * Ids of things that lie in a vendor's account, which all members share. The gateway offers no route that stores any,
 * so an id in a request is somebody else's, unless the vendor's configuration says `shared_ids: true`.
 */

import { GatewayError } from "../errors.ts"
import type { Body, Call, Host, Route } from "../plugin.ts"
import { isSet, text } from "./read.ts"
import { type JsonObject, valuesIn } from "./walk.ts"

export interface StoredIds {
  /** Keys whose presence anywhere asks for a closer look: the route's `finds`. */
  readonly suspects: readonly string[]
  /** The name of the first field of the request that points into the vendor's account, if there is one. */
  readonly field: (request: JsonObject) => string | undefined
  /** The word that the SDKs know for a field that is refused: the error's `reason`. */
  readonly reasons?: Readonly<Record<string, string>>
}

/** Every vendor that may serve this call lets all members use what lies in its account. */
export const sharesIds = (host: Pick<Host, "catalog">, call: Pick<Call, "get">): boolean =>
  call.get("plan").every(target => host.catalog.vendors.get(target.vendor)?.sharedIds === true)

/** The host of a URL as hosts are compared: a dot at its end names the same one. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/\.+$/, "")

/** Vendors pass over an empty name, and over an empty list of them. */
export const isFilled = (value: unknown): boolean =>
  isSet(value) && value !== "" && !(Array.isArray(value) && value.length === 0)

/** Some vendors give uploads a scheme of their own (`ms://file-1`). */
export const isUploadUrl = (value: unknown): boolean => {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(text(value) ?? "")?.[1]
  return scheme !== undefined && !["https", "http", "data"].includes(scheme.toLowerCase())
}

/** @throws GatewayError `invalid_request` (400): the request names something stored at the vendor, or may hide that it does */
export const refuseStoredIds = (
  host: Pick<Host, "catalog">,
  call: Call,
  body: Body,
  { suspects, field, reasons }: StoredIds,
): void => {
  if (!suspects.some(key => (body.scan.found.get(key) ?? 0) > 0) || sharesIds(host, call)) return
  const name = field(body.json())
  if (name === undefined) return refuseRepeats(call.route, body)
  const reason = reasons?.[name]
  throw new GatewayError(
    "invalid_request",
    `${name} names something stored at the vendor, which the gateway does not offer`,
    { param: name, ...(reason === undefined ? {} : { reason }) },
  )
}

/**
 * A relayed body is read by two parsers: of a key that stands twice we know the last value, the vendor may take the
 * first. Only for requests that we look into; others relay whatever they repeat.
 *
 * @throws GatewayError `invalid_request` (400): a key stands twice in one of the body's objects
 */
const refuseRepeats = ({ accepts }: Route, body: Body): void => {
  if (accepts?.wire === undefined || valuesIn(body.json()) === body.scan.values) return
  throw new GatewayError("invalid_request", "The request body repeats a key")
}
