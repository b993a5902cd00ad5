/** One model of catalog.yaml. */

import type { JsonSchema, LeftOut, Model, ModelType, PriceCard, Rules, Target, Vendor } from "../offer.ts"
import { modelTypes } from "../offer.ts"
import { neverUsed, uncovered } from "./coverage.ts"
import { type Field, required } from "./field.ts"
import { nameRule, plainName } from "./name.ts"
import { readCard } from "./price-card.ts"
import { schemaFault } from "./schema.ts"

/** Vendors of gateway.yaml; `left` are the optional ones without a secret: their targets are not offered. */
export interface KnownVendors {
  readonly vendors: ReadonlyMap<string, Vendor>
  /** All that are written, also those with a mistake, which was told; absent when nothing could be read. */
  readonly names?: ReadonlySet<string>
  readonly left: LeftOut["vendors"]
}

export interface ReadModels {
  readonly models: ReadonlyMap<string, Model>
  readonly left: LeftOut["models"]
}

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

export const readModels = (
  written: ReadonlyMap<string, Field>,
  aliases: ReadonlyMap<string, string>,
  known: KnownVendors,
): ReadModels => {
  const old = Map.groupBy(aliases, ([, model]) => model)
  const models = new Map<string, Model>()
  const left = new Map<string, { readonly vendors: readonly string[]; readonly aliases: readonly string[] }>()
  for (const [name, field] of written) {
    if (!plainName.test(name)) field.problem(`expected ${nameRule}`)
    const model = readModel(name, field, known, old.get(name)?.map(([alias]) => alias) ?? [])
    if (model === undefined) continue
    const offered = model.targets.filter(target => !known.left.has(target.vendor))
    if (offered.length > 0) models.set(name, { ...model, targets: offered })
    else left.set(name, { vendors: [...new Set(model.targets.map(({ vendor }) => vendor))], aliases: model.aliases })
  }
  return { models, left }
}

const maxTokens = { least: 1, most: 1_000_000_000 }

/** With all the targets that are written. */
const readModel = (name: string, field: Field, known: KnownVendors, aliases: readonly string[]): Model | undefined => {
  const fields = field.fields(modelKeys)
  const type = required(field, fields, "type")?.choice(modelTypes)
  const targets = readTargets(required(field, fields, "targets"), known)
  const parameters = readParameters(fields.get("parameters"))
  const price = readPrice(fields.get("price"), { type, parameters })
  if (type === undefined || targets === undefined || targets.length === 0) return undefined
  return {
    name,
    type,
    family: fields.get("family")?.string() ?? targets[0]!.vendor,
    targets,
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

const readTargets = (field: Field | undefined, known: KnownVendors): readonly Target[] | undefined => {
  const items = field?.list()
  if (field?.shape.kind === "list" && items?.length === 0) field.problem("expected at least one target")
  return items?.flatMap(item => readTarget(item, known) ?? [])
}

const readTarget = (field: Field, known: KnownVendors): Target | undefined => {
  const fields = field.fields(["vendor", "model", "weight"])
  const written = required(field, fields, "vendor")
  const vendor = written?.string("the name of a vendor")
  const model = required(field, fields, "model")?.word("the vendor's name of the model")
  const weight = fields.get("weight")?.integer({ least: 1, most: 1_000_000 })
  if (vendor === undefined || model === undefined) return undefined
  if (known.names?.has(vendor) === false)
    return written?.problem(`expected a vendor of this deployment (${[...known.names].join(", ")}), found ${vendor}`)
  return { vendor, model, ...optional("weight", weight) }
}

/** A day, in Unix seconds; 0 for a model without one. */
const readCreated = (field: Field | undefined): number => {
  const day = field?.string("a day such as 2026-01-31", /^\d{4}-\d{2}-\d{2}$/)
  if (day === undefined) return 0
  const seconds = Date.parse(`${day}T00:00:00Z`) / 1000
  return Number.isNaN(seconds) ? (field?.expected("a day of the calendar") ?? 0) : seconds
}

const effortName = /^[a-z]{1,16}$/

/** How each rule is written; anything else under `rules` is a mistake. */
const ruleReaders: { readonly [Name in keyof Rules]-?: (field: Field) => Rules[Name] | undefined } = {
  temperature: field => field.list().flatMap(item => item.number({ least: 0, most: 2 }) ?? []),
  refuse: field => field.strings("the name of a parameter"),
  max_tokens_as: field => field.string("the name of a parameter"),
  efforts: field => field.strings("the name of an effort", effortName),
  effort_budgets: field => Object.fromEntries([...field.fields()].map(([name, item]) => [name, readBudget(item)])),
  effort_with_tools: field => field.string("drop, or the name of an effort", effortName),
  sampling_efforts: field => field.strings("default, or the name of an effort", effortName),
  reasoning_back: field => field.boolean(),
  responses_only: field => field.boolean(),
}

const readBudget = (field: Field): number => field.integer({ least: 0, most: 1_000_000 }) ?? 0

const readRules = (field: Field | undefined): Rules => {
  const fields = field?.fields(Object.keys(ruleReaders)) ?? new Map<string, Field>()
  const rules = [...fields].flatMap(([name, item]) => {
    const value = Object.hasOwn(ruleReaders, name) ? ruleReaders[name as keyof Rules](item) : undefined
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(rules) as Rules
}

const readParameters = (field: Field | undefined): JsonSchema | undefined => {
  if (field === undefined) return undefined
  field.fields()
  const schema = field.plain() as JsonSchema
  const fault = schemaFault(schema)
  return fault === undefined ? schema : field.problem(`expected a JSON Schema: ${fault}`)
}

/** A card that has a row for everything the parameters allow, and no line that never charges; else a problem. */
export const readPrice = (
  field: Field | undefined,
  { type, parameters }: { readonly type?: ModelType | undefined; readonly parameters?: JsonSchema | undefined },
): PriceCard | undefined => {
  if (field === undefined) return undefined
  const card = readCard(field)
  if (card === undefined) return undefined
  for (const gap of uncovered(card, parameters)) field.problem(`the price does not cover the parameters: ${gap}`)
  if (type !== undefined) for (const item of neverUsed(card, type)) field.problem(`no ${type} model ever uses ${item}`)
  return card
}
