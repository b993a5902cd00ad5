/** What a configuration means, before it is served. */

import { credits, creditsText } from "../catalog/credits.ts"
import { type Config, loadConfig } from "../catalog/load.ts"
import { price } from "../catalog/price.ts"
import { type Explanation, explainCall, unsetText, untaken, withGeneration } from "../explain.ts"
import type { Model, PriceCard } from "../offer.ts"
import { type Answer, type Command, type Input, word } from "./command.ts"
import { facts, table, visible } from "./text.ts"

export const checkCommands: readonly Command[] = [
  {
    name: "check",
    what: "check the configuration and the catalog, and print prices at defaults",
    run: async input => {
      const config = await load(input)
      return withGeneration(config, generation => checked(config, generation.routes.length, untaken(generation)))
    },
  },
  {
    name: "explain",
    takes: "<method> <path>",
    options: [["--model <name>", "the model that the call would name"]],
    what: "say what would happen to a call: its route, steps, targets and price",
    run: explain,
  },
]

const load = (input: Input): Promise<Config> => loadConfig(input.file, { env: input.terminal.env })

async function explain(input: Input): Promise<Answer> {
  const model = input.options.model
  const call = { method: word(input, 0).toUpperCase(), path: word(input, 1), ...(model === undefined ? {} : { model }) }
  const explanation = await explainCall(await load(input), call)
  return { data: explanation, text: explained(explanation) }
}

const checked = (config: Config, routes: number, inVain: readonly Model[]): Answer => {
  const models = [...config.catalog.models.values()].map(model => ({
    model: model.name,
    type: model.type,
    targets: model.targets.map(target => `${target.vendor}/${target.model}`),
    ...defaultPrice(model, config.catalog.card(model, undefined)),
  }))
  const left = leftOut(config)
  const summary = `${config.file}: ${routes} routes, ${models.length} models, vendors ${[...config.vendors.keys()].join(" ")}: nothing wrong`
  return {
    data: {
      file: config.file,
      catalog: config.catalog.digest,
      routes,
      vendors: [...config.vendors.keys()],
      models,
      left,
      untaken: inVain.map(({ name }) => name),
    },
    text: [
      table(
        ["model", "type", "targets", "price"],
        models.map(one => [one.model, one.type, one.targets.join(" "), one.basis]),
      ),
      "",
      ...left.map(({ vendor, unset, models }) => `left out: ${vendor} (${unsetText(unset)}), ${models} models`),
      ...[...Map.groupBy(inVain, ({ type }) => type)].map(
        ([type, models]) => `no route takes (${type}): ${models.map(({ name }) => name).join(" ")}`,
      ),
      visible(summary),
    ].join("\n"),
  }
}

/** Optional vendors without a secret, and how many models each would serve that nobody else serves here. */
const leftOut = ({ catalog: { left } }: Config) =>
  [...left.vendors].map(([vendor, unset]) => ({
    vendor,
    unset,
    models: [...left.models.values()].filter(({ vendors }) => vendors.includes(vendor)).length,
  }))

const noPrice = "none: its calls are refused"

interface DefaultPrice {
  /** What one call costs when its parameters are all at their defaults; absent when that depends on its usage. */
  readonly credits?: number
  readonly basis: string
}

const defaultPrice = (model: Model, card: PriceCard | undefined): DefaultPrice => {
  if (card === undefined) return { basis: noPrice }
  const basis = card.lines.map(line => `${line.item} ${line.text}`).join("; ")
  if (!card.lines.some(line => line.kind === "table")) return { basis }
  const { micros } = price(card, { parameters: defaultsOf(model), usage: {} })
  return { credits: credits(micros), basis: `${creditsText(micros)} (${basis})` }
}

const defaultsOf = ({ parameters }: Model): Readonly<Record<string, unknown>> => {
  const properties = (parameters?.properties ?? {}) as Readonly<Record<string, { readonly default?: unknown }>>
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      schema.default === undefined ? [] : [[name, schema.default]],
    ),
  )
}

const explained = (found: Explanation): string =>
  [
    facts([
      ["route", found.route],
      ["errors as", found.dialect],
      ["rate limit", found.limit],
      ["charge", found.charge],
      ["steps", found.chain.join(" > ")],
      ...found.bounds.map(({ plugin, text }) => [plugin, text] as const),
    ]),
    ...(found.model === undefined ? [] : modelText(found)),
  ].join("\n\n")

const modelText = ({ model = "", taken, takenBy, targets, price: lines }: Explanation): readonly string[] => [
  facts([
    ["model", model],
    ["taken here", taken ? "yes" : "no"],
    ...(lines.length === 0 ? [["price", noPrice] as const] : []),
  ]),
  table(["taken by"], takenBy.length === 0 ? [["no route"]] : takenBy.map(route => [route])),
  ...(targets.length === 0 ? [] : [table(["vendor", "model", "weight", "secrets"], targetRows(targets))]),
  ...(lines.length === 0
    ? []
    : [
        table(
          ["price", "basis", "when"],
          lines.map(line => [line.item, line.basis, line.when ?? ""]),
        ),
      ]),
]

const targetRows = (targets: Explanation["targets"]): readonly (readonly string[])[] => {
  const unweighted = targets.length === 1 ? "alone" : "fallback"
  return targets.map(({ vendor, model, weight, secrets }) => [
    vendor,
    model,
    weight === undefined ? unweighted : String(weight),
    secrets.join(" "),
  ])
}
