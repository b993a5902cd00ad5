/** `vendors` of gateway.yaml. */

import type { Timeouts, Vendor } from "../offer.ts"
import { type Field, required } from "./field.ts"
import type { KnownVendors } from "./models.ts"
import { readSecret, type SecretSource } from "./secret.ts"

const vendorName = /^[a-z][a-z0-9-]{0,63}$/

/** What a vendor gets that says nothing: a model may think for two minutes before its first byte. */
const defaultTimeouts: Timeouts = {
  connectMs: 5_000,
  firstByteMs: 120_000,
  idleMs: 120_000,
  totalMs: 600_000,
  totalStreamMs: 3_600_000,
}

export const readVendors = (field: Field | undefined, source: SecretSource): KnownVendors => {
  const vendors = new Map<string, Vendor>()
  const left = new Map<string, readonly string[]>()
  const written = field?.fields() ?? new Map<string, Field>()
  for (const [name, one] of written) {
    if (!vendorName.test(name)) one.problem("expected a name of lowercase letters, digits and dashes")
    const vendor = readVendor(name, one, source)
    if (vendor === undefined) continue
    if ("unset" in vendor) left.set(name, vendor.unset)
    else vendors.set(name, vendor)
  }
  return { vendors, left, ...(field?.shape.kind === "map" ? { names: new Set(written.keys()) } : {}) }
}

const vendorKeys = ["adapter", "origin", "secrets", "optional", "timeouts", "on_client_abort", "shared_ids", "options"]

/** The variables without which an optional vendor is left out. */
interface Left {
  readonly unset: readonly string[]
}

const readVendor = (name: string, field: Field, source: SecretSource): Vendor | Left | undefined => {
  const fields = field.fields(vendorKeys)
  const adapter = fields.get("adapter")?.string("the name of an adapter, a path or a package") ?? name
  const origin = readOrigin(required(field, fields, "origin"))
  const secrets = fields.get("secrets")?.list() ?? []
  const optional = fields.get("optional")?.boolean() ?? false
  const unset = secrets.flatMap(secret => unsetVariable(secret, source) ?? [])
  if (optional && !source.mayBeAbsent && secrets.length > 0 && unset.length === secrets.length) return { unset }
  const read = secrets.flatMap(secret => readSecret(secret, source) ?? [])
  checkNames(
    field,
    read.map(secret => secret.name),
  )
  if (origin === undefined) return undefined
  return {
    name,
    adapter,
    origin,
    secrets: read,
    timeouts: readTimeouts(fields.get("timeouts")),
    onClientAbort: fields.get("on_client_abort")?.choice(["drain", "cancel"]) ?? "drain",
    sharedIds: fields.get("shared_ids")?.boolean() ?? false,
    options: readOptions(fields.get("options")),
  }
}

/** An optional vendor counts as absent only by its environment: a missing file is always a mistake. */
const unsetVariable = (field: Field, source: SecretSource): string | undefined => {
  const env = field.shape.kind === "map" ? field.shape.entries.get("env")?.plain() : undefined
  return typeof env === "string" && (source.env[env] ?? "") === "" ? env : undefined
}

const checkNames = (field: Field, names: readonly string[]): void => {
  if (new Set(names).size < names.length) field.problem("expected secrets with different names")
}

const readOptions = (field: Field | undefined): Readonly<Record<string, unknown>> => {
  field?.fields()
  return field?.shape.kind === "map" ? (field.plain() as Record<string, unknown>) : {}
}

/** Scheme, host, port and a path prefix: nothing that could carry a credential or a query. */
const readOrigin = (field: Field | undefined): string | undefined => {
  const text = field?.string("an address such as https://api.example.com")
  if (field === undefined || text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  const fits =
    url !== undefined &&
    ["http:", "https:"].includes(url.protocol) &&
    [url.username, url.password, url.search, url.hash].every(part => part === "")
  return fits
    ? `${url.origin}${url.pathname.replace(/\/+$/, "")}`
    : field.expected("an http or https address without user, query and fragment")
}

const readTimeouts = (field: Field | undefined): Timeouts => {
  const fields = field?.fields(["connect", "first_byte", "idle", "total", "total_stream"])
  return {
    connectMs: fields?.get("connect")?.duration() ?? defaultTimeouts.connectMs,
    firstByteMs: fields?.get("first_byte")?.duration() ?? defaultTimeouts.firstByteMs,
    idleMs: fields?.get("idle")?.duration() ?? defaultTimeouts.idleMs,
    totalMs: fields?.get("total")?.duration() ?? defaultTimeouts.totalMs,
    totalStreamMs: fields?.get("total_stream")?.duration() ?? defaultTimeouts.totalStreamMs,
  }
}
