/** What is offered: models, aliases and overlays of catalog.yaml, checked against the deployment's vendors. */

import type { Catalog, JsonSchema, Model, PriceCard, Rules, Target, Vendor } from "../offer.ts"
import { modelTypes } from "../offer.ts"
import { uncovered } from "./coverage.ts"
import { type Field, required } from "./field.ts"
import { digest, readCard } from "./price-card.ts"
import { schemaFault } from "./schema.ts"

export const modelName = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
const nameRule = "a name of at most 128 letters, digits, dots, colons, dashes and underscores"

/** Vendors of gateway.yaml; `left` are the optional ones without a secret: their targets are not offered. */
export interface KnownVendors {
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly left: ReadonlySet<string>
}

type Overlay = ReadonlyMap<string, PriceCard>

/** Reads catalog.yaml; what is wrong with it is reported on the fields. Models keep the order of the file. */
export const readCatalog = (field: Field, known: KnownVendors): Catalog => {
  const fields = field.fields(["models", "aliases", "overlays"])
  const aliases = readAliases(fields.get("aliases"))
  const written = required(field, fields, "models")?.fields() ?? new Map<string, Field>()
  const models = readModels(written, aliases, known)
  checkAliases(fields.get("aliases"), written)
  checkIds(written, models)
  const overlays = readOverlays(fields.get("overlays"), written, models)
  return new LoadedCatalog(digest([field.plain(), [...known.vendors.keys()]]), models, known.vendors, overlays)
}

class LoadedCatalog implements Catalog {
  readonly digest: string
  readonly models: ReadonlyMap<string, Model>
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly #overlays: ReadonlyMap<string, Overlay>
  readonly #named: ReadonlyMap<string, Model>

  constructor(
    digest: string,
    models: ReadonlyMap<string, Model>,
    vendors: ReadonlyMap<string, Vendor>,
    overlays: ReadonlyMap<string, Overlay>,
  ) {
    this.digest = digest
    this.models = models
    this.vendors = vendors
    this.#overlays = overlays
    const old = [...models.values()].flatMap(model => model.aliases.map(alias => [alias, model] as const))
    this.#named = new Map([...models, ...old])
  }

  get overlays(): readonly string[] {
    return [...this.#overlays.keys()]
  }

  find(name: string): Model | undefined {
    return this.#named.get(name)
  }

  card(model: Model, overlay: string | undefined): PriceCard | undefined {
    const own = overlay === undefined ? undefined : this.#overlays.get(overlay)?.get(model.name)
    return own ?? model.price
  }
}

// ---- aliases ----

const readAliases = (field: Field | undefined): ReadonlyMap<string, string> =>
  new Map([...(field?.fields() ?? [])].flatMap(([name, to]) => aliasOf(name, to)))

const aliasOf = (name: string, to: Field): readonly (readonly [string, string])[] => {
  if (!modelName.test(name)) to.problem(`expected ${nameRule}`)
  const model = to.string("the name of a model")
  return model === undefined ? [] : [[name, model]]
}

const checkAliases = (field: Field | undefined, written: ReadonlyMap<string, Field>): void => {
  for (const [name, to] of field?.fields() ?? []) {
    if (written.has(name)) to.problem("expected another name: a model bears this one")
    const model = to.plain()
    if (typeof model === "string" && !written.has(model))
      to.problem(`expected the name of a model, and ${model} is none`)
  }
}

// ---- models ----

const modelKeys = [
  "id",
  "type",
  "family",
  "targets",
  "description",
  "context_window",
  "max_output",
  "created",
  "rules",
  "messages",
  "offered",
  "capabilities",
  "parameters",
  "price",
] as const

const readModels = (
  written: ReadonlyMap<string, Field>,
  aliases: ReadonlyMap<string, string>,
  known: KnownVendors,
): ReadonlyMap<string, Model> => {
  const old = Map.groupBy(aliases, ([, model]) => model)
  const models = new Map<string, Model>()
  for (const [name, field] of written) {
    if (!modelName.test(name)) field.problem(`expected ${nameRule}`)
    const model = readModel(name, field, known, old.get(name)?.map(([alias]) => alias) ?? [])
    if (model !== undefined) models.set(name, model)
  }
  return models
}

const maxTokens = { least: 1, most: 1_000_000_000 }

const readModel = (name: string, field: Field, known: KnownVendors, aliases: readonly string[]): Model | undefined => {
  const fields = field.fields(modelKeys)
  const type = required(field, fields, "type")?.choice(modelTypes)
  const targets = required(field, fields, "targets")
    ?.list()
    .flatMap(target => readTarget(target, known) ?? [])
  const parameters = readParameters(fields.get("parameters"))
  const price = readPrice(fields.get("price"), parameters)
  if (type === undefined || targets === undefined) return undefined
  const offeredBy = targets.filter(target => !known.left.has(target.vendor))
  if (offeredBy.length === 0)
    return targets.length === 0 ? fields.get("targets")?.problem("expected at least one target") : undefined
  return {
    name,
    type,
    family: fields.get("family")?.string() ?? targets[0]!.vendor,
    targets: offeredBy,
    created: readCreated(fields.get("created")),
    rules: readRules(fields.get("rules")),
    messages: fields.get("messages")?.boolean() ?? false,
    offered: fields.get("offered")?.boolean() ?? true,
    capabilities: fields.get("capabilities")?.strings() ?? [],
    aliases,
    ...optional("id", fields.get("id")?.integer({ least: 1, most: 2 ** 31 - 1 })),
    ...optional("description", fields.get("description")?.string()),
    ...optional("contextWindow", fields.get("context_window")?.integer(maxTokens)),
    ...optional("maxOutput", fields.get("max_output")?.integer(maxTokens)),
    ...optional("parameters", parameters),
    ...optional("price", price),
  }
}

/** `{ name: value }`, or nothing when there is no value. */
const optional = <Name extends string, Value>(name: Name, value: Value | undefined): { readonly [N in Name]?: Value } =>
  (value === undefined ? {} : { [name]: value }) as { readonly [N in Name]?: Value }

const readTarget = (field: Field, known: KnownVendors): Target | undefined => {
  const fields = field.fields(["vendor", "model", "weight"])
  const written = required(field, fields, "vendor")
  const vendor = written?.string("the name of a vendor")
  const model = required(field, fields, "model")?.word("the vendor's name of the model")
  const weight = fields.get("weight")?.integer({ least: 1, most: 1_000_000 })
  if (vendor === undefined || model === undefined) return undefined
  if (!known.vendors.has(vendor) && !known.left.has(vendor)) {
    return written?.problem(
      `expected a vendor of this deployment (${[...known.vendors.keys()].join(", ")}), found ${vendor}`,
    )
  }
  return { vendor, model, ...optional("weight", weight) }
}

/** A day, in Unix seconds; models that tell none are as old as time. */
const readCreated = (field: Field | undefined): number => {
  const day = field?.string("a day such as 2026-01-31", /^\d{4}-\d{2}-\d{2}$/)
  if (day === undefined) return 0
  const seconds = Date.parse(`${day}T00:00:00Z`) / 1000
  return Number.isNaN(seconds) ? (field?.expected("a day of the calendar") ?? 0) : seconds
}

const effortName = /^[a-z]{1,16}$/

const readRules = (field: Field | undefined): Rules => {
  const known = [
    "temperature",
    "refuse",
    "max_tokens_as",
    "efforts",
    "effort_budgets",
    "effort_with_tools",
    "responses_only",
  ]
  const fields = field?.fields(known)
  if (fields === undefined) return {}
  const temperatures = fields
    .get("temperature")
    ?.list()
    .flatMap(item => item.number({ least: 0, most: 2 }) ?? [])
  const budgets = fields.get("effort_budgets")?.fields()
  const tokens =
    budgets === undefined
      ? undefined
      : [...budgets].map(([name, item]) => [name, item.integer({ least: 0, most: 1_000_000 }) ?? 0])
  return {
    ...optional("temperature", temperatures),
    ...optional("refuse", fields.get("refuse")?.strings("the name of a parameter")),
    ...optional("max_tokens_as", fields.get("max_tokens_as")?.string("the name of a parameter")),
    ...optional("efforts", fields.get("efforts")?.strings("the name of an effort", effortName)),
    ...optional("effort_budgets", tokens === undefined ? undefined : Object.fromEntries(tokens)),
    ...optional(
      "effort_with_tools",
      fields.get("effort_with_tools")?.string("drop, or the name of an effort", effortName),
    ),
    ...optional("responses_only", fields.get("responses_only")?.boolean()),
  }
}

const readParameters = (field: Field | undefined): JsonSchema | undefined => {
  if (field === undefined) return undefined
  field.fields()
  const schema = field.plain() as JsonSchema
  const fault = schemaFault(schema)
  return fault === undefined ? schema : field.problem(`expected a JSON Schema: ${fault}`)
}

const readPrice = (field: Field | undefined, parameters: JsonSchema | undefined): PriceCard | undefined => {
  if (field === undefined) return undefined
  const card = readCard(field)
  if (card === undefined) return undefined
  for (const gap of uncovered(card, parameters)) field.problem(`the price does not cover the parameters: ${gap}`)
  return card
}

/** Operations name their model by this number: two models with one would be one. */
const checkIds = (written: ReadonlyMap<string, Field>, models: ReadonlyMap<string, Model>): void => {
  const seen = new Map<number, string>()
  for (const { id, name } of models.values()) {
    if (id === undefined) continue
    const other = seen.get(id)
    if (other !== undefined) written.get(name)?.problem(`expected an id of its own, and ${other} has ${id} too`)
    seen.set(id, name)
  }
}

// ---- overlays ----

const readOverlays = (
  field: Field | undefined,
  written: ReadonlyMap<string, Field>,
  models: ReadonlyMap<string, Model>,
): ReadonlyMap<string, Overlay> =>
  new Map([...(field?.fields() ?? [])].map(([name, overlay]) => [name, readOverlay(name, overlay, written, models)]))

const readOverlay = (
  name: string,
  field: Field,
  written: ReadonlyMap<string, Field>,
  models: ReadonlyMap<string, Model>,
): Overlay => {
  if (!modelName.test(name)) field.problem(`expected ${nameRule}`)
  const cards = new Map<string, PriceCard>()
  for (const [model, change] of field.fields()) {
    if (!written.has(model)) change.problem("expected the name of a model")
    const price = required(change, change.fields(["price"]), "price")
    const card = readPrice(price, models.get(model)?.parameters)
    if (card !== undefined) cards.set(model, card)
  }
  return cards
}
