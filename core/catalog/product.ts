/** The keys of gateway.yaml that describe the product: pipeline, endpoints, mounts, first organisations. */

import { keyDigest } from "../kit/credentials.ts"
import type { BootstrapMember, BootstrapOrganisation, Config, PluginLine } from "./config.ts"
import { micros } from "./credits.ts"
import { type Field, required } from "./field.ts"
import { nameRule, plainName } from "./name.ts"

/** `name`, or `name: { options }`. */
export const readPlugins = (field: Field | undefined): readonly PluginLine[] =>
  field?.list().flatMap(line => readPluginLine(line) ?? []) ?? []

const readPluginLine = (field: Field): PluginLine | undefined => {
  if (field.shape.kind !== "map") {
    const name = field.string("a plugin: its name, or name: { options }")
    return name === undefined ? undefined : pluginLine(name, field, undefined)
  }
  const [first, ...rest] = field.fields()
  if (first === undefined || rest.length > 0) return field.problem("expected one plugin: name: { options }")
  return pluginLine(first[0], first[1], first[1].plain() ?? undefined)
}

const pluginLine = (name: string, field: Field, options: unknown): PluginLine => ({
  name,
  options,
  at: field.at,
  problem: (path, message) => field.problemAt(path, message),
})

export const readEndpoints = (field: Field | undefined): Config["endpoints"] =>
  field === undefined || field.plain() === "all" ? "all" : readPlugins(field)

/** The families by the specification's own words; their vendors' names stand in gateway.yaml. */
export const defaultMounts: Config["mounts"] = {
  "vendor-a": ["vendor-a"],
  "vendor-b": ["vendor-b"],
  "vendor-c": ["vendor-c"],
}

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]*$/

export const readMounts = (field: Field | undefined): Config["mounts"] => {
  if (field === undefined) return defaultMounts
  const taken = new Set<string>()
  for (const prefix of [...field.fields().values()].flatMap(family => family.list())) {
    const name = String(prefix.plain())
    if (taken.has(name)) prefix.problem("expected a prefix that no other family has")
    taken.add(name)
  }
  return Object.fromEntries(
    [...field.fields()].map(([family, prefixes]) => [family, prefixes.strings("one path segment", segment)]),
  )
}

// ---- bootstrap ----

type CurrentName = (model: string) => string | undefined

/** @param current the name that a model bears now; nothing for what the catalog does not know */
export const readBootstrap = (
  field: Field | undefined,
  sandbox: boolean,
  current: CurrentName,
): readonly BootstrapOrganisation[] => {
  const organisations = field?.fields(["organisations"]).get("organisations")?.fields() ?? new Map<string, Field>()
  return [...organisations].map(([name, one]) => readOrganisation(name, one, sandbox, current))
}

const readOrganisation = (
  name: string,
  field: Field,
  sandbox: boolean,
  current: CurrentName,
): BootstrapOrganisation => {
  if (!plainName.test(name)) field.problem(`expected ${nameRule}`)
  const fields = field.fields(["gateway", "models", "members"])
  const models = fields.get("models")
  return {
    name,
    gateway: fields.get("gateway")?.boolean() ?? true,
    models: models === undefined || models.plain() === "all" ? "all" : readModelNames(models, current),
    members: [...(fields.get("members")?.fields() ?? [])].map(([member, one]) => readMember(member, one, sandbox)),
  }
}

const readModelNames = (field: Field, current: CurrentName): readonly string[] => [
  ...new Set(field.list().flatMap(item => readModelName(item, current) ?? [])),
]

const readModelName = (field: Field, current: CurrentName): string | undefined => {
  const name = field.string("the name of a model")
  if (name === undefined) return undefined
  return current(name) ?? field.problem(`there is no model ${name}`)
}

const readMember = (name: string, field: Field, sandbox: boolean): BootstrapMember => {
  if (!plainName.test(name)) field.problem(`expected ${nameRule}`)
  const fields = field.fields(["credits", "keys"])
  const keys =
    fields
      .get("keys")
      ?.list()
      .flatMap(key => readKey(key, sandbox) ?? []) ?? []
  return { name, micros: readCredits(required(field, fields, "credits")), keys }
}

const readCredits = (field: Field | undefined): number => {
  const credits = field?.number({ least: 0, most: 9_000_000_000 })
  if (credits === undefined) return 0
  try {
    return micros(credits)
  } catch {
    return field?.expected("credits with at most six decimals") ?? 0
  }
}

const digestText = /^sha256:([0-9a-f]{64})$/

const readKey = (field: Field, sandbox: boolean): string | undefined => {
  const text = field.string(`"sha256:<64 hex digits>"`)
  const digest = digestText.exec(text ?? "")?.[1]
  if (digest !== undefined || text === undefined) return digest
  if (sandbox && text.startsWith("tg_")) return keyDigest(text)
  return field.problem('expected "sha256:<64 hex digits>", the digest of a key; a key is never written here')
}
