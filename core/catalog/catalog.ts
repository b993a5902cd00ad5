/** What is offered: models, aliases and overlays of catalog.yaml, checked against the deployment's vendors. */

import type { Catalog, LeftOut, Model, PriceCard, Vendor } from "../offer.ts"
import { type Field, required } from "./field.ts"
import { type KnownVendors, readModels, readPrice } from "./models.ts"
import { nameRule, plainName } from "./name.ts"
import { digest } from "./price-card.ts"

type Overlay = ReadonlyMap<string, PriceCard>

/** Reads catalog.yaml; what is wrong with it is reported on the fields. Models keep the order of the file. */
export const readCatalog = (field: Field, known: KnownVendors): Catalog => {
  const fields = field.fields(["models", "aliases", "overlays"])
  const aliases = readAliases(fields.get("aliases"))
  const written = required(field, fields, "models")?.fields() ?? new Map<string, Field>()
  const { models, left } = readModels(written, aliases, known)
  checkAliases(fields.get("aliases"), written)
  checkIds(written, models)
  const overlays = readOverlays(fields.get("overlays"), written, models)
  const version = digest([field.plain(), [...known.vendors.keys()]])
  return new LoadedCatalog(version, models, known, overlays, left)
}

class LoadedCatalog implements Catalog {
  readonly digest: string
  readonly models: ReadonlyMap<string, Model>
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly left: LeftOut
  readonly #overlays: ReadonlyMap<string, Overlay>
  readonly #named: ReadonlyMap<string, Model>

  constructor(
    digest: string,
    models: ReadonlyMap<string, Model>,
    known: KnownVendors,
    overlays: ReadonlyMap<string, Overlay>,
    left: LeftOut["models"],
  ) {
    this.digest = digest
    this.models = models
    this.vendors = known.vendors
    this.left = { vendors: known.left, models: left }
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
    if (overlay === undefined) return model.price
    const own = this.#overlays.get(overlay)
    // The agreed prices are gone. List prices are not a substitute: they may be a thousand times as high.
    return own === undefined ? undefined : (own.get(model.name) ?? model.price)
  }
}

// ---- aliases ----

const readAliases = (field: Field | undefined): ReadonlyMap<string, string> =>
  new Map([...(field?.fields() ?? [])].flatMap(([name, to]) => aliasOf(name, to)))

const aliasOf = (name: string, to: Field): readonly (readonly [string, string])[] => {
  if (!plainName.test(name)) to.problem(`expected ${nameRule}`)
  const model = to.string("the name of a model")
  return model === undefined ? [] : [[name, model]]
}

const checkAliases = (field: Field | undefined, written: ReadonlyMap<string, Field>): void => {
  for (const [name, to] of field?.fields() ?? []) {
    if (written.has(name)) to.problem("expected another name: a model has this one")
    const model = to.plain()
    if (typeof model === "string" && !written.has(model)) to.problem(`there is no model ${model}`)
  }
}

/** Operations name their model by this number: two models with one would be one. */
const checkIds = (written: ReadonlyMap<string, Field>, models: ReadonlyMap<string, Model>): void => {
  const seen = new Map<number, string>()
  for (const { id, name } of models.values()) {
    if (id === undefined) continue
    const other = seen.get(id)
    if (other !== undefined) written.get(name)?.problem(`expected a unique id: ${other} has ${id} too`)
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
  if (!plainName.test(name)) field.problem(`expected ${nameRule}`)
  const cards = new Map<string, PriceCard>()
  for (const [model, change] of field.fields()) {
    if (!written.has(model)) change.problem(`there is no model ${model}`)
    const price = required(change, change.fields(["price"]), "price")
    // A model whose vendors were all left out has no parameters to cover, and nobody to charge.
    const card = models.has(model) ? readPrice(price, models.get(model)!) : undefined
    if (card !== undefined) cards.set(model, card)
  }
  return cards
}
