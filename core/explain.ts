/** What would happen to a call, from the configuration alone: nothing is listened on, nothing is sent. */

import { approximate } from "./catalog/exact.ts"
import type { Config } from "./catalog/load.ts"
import { buildGeneration, type Generation } from "./generation.ts"
import { isKeptForFamily, takesModel } from "./kit/takes.ts"
import type { Model, PriceCard, PriceCondition, PriceLine, PriceRow } from "./offer.ts"
import type { Route } from "./plugin.ts"
import { openProcess } from "./process.ts"

export interface Explanation {
  readonly route: string
  readonly dialect: string
  /** The rate-limit bucket. */
  readonly limit: string
  readonly charge: string
  /** What the steps say of their bounds: requests, holds, bytes. */
  readonly bounds: readonly { readonly plugin: string; readonly text: string }[]
  /** The plugins that the call passes, outermost first. */
  readonly chain: readonly string[]
  /** As asked for, or what the route itself sells. */
  readonly model?: string
  /** Whether this route serves the model. */
  readonly taken?: boolean
  /** All routes that serve it. */
  readonly takenBy: readonly string[]
  readonly targets: readonly {
    readonly vendor: string
    readonly model: string
    readonly weight?: number
    /** Names, never values. */
    readonly secrets: readonly string[]
  }[]
  /** The card's lines, then those of its `when` rows; the first row that matches wins. Empty: calls are refused. */
  readonly price: readonly { readonly item: string; readonly basis: string; readonly when?: string }[]
}

export interface ExplainQuestion {
  readonly method: string
  /** With or without `base_path`; a whole URL and a query do no harm. */
  readonly path: string
  readonly model?: string
}

/** @throws Error in words when no route takes the call, the catalog does not know the model, or it is left out */
export const explainCall = (config: Config, question: ExplainQuestion): Promise<Explanation> =>
  withGeneration(config, generation => explain(generation, question))

/**
 * Builds everything that a configuration names, beside a store in memory, hands it over and takes it down again.
 *
 * @throws ConfigError when a gateway would not start from it
 */
export const withGeneration = async <T>(config: Config, work: (generation: Generation) => T): Promise<T> => {
  const alone: Config = {
    ...config,
    sandbox: false,
    store: { kind: "sqlite", path: ":memory:", durability: "process" },
  }
  const process = await openProcess(alone, { log: silent })
  try {
    const generation = await buildGeneration(alone, process.parts)
    const answer = work(generation)
    await generation.retire()
    return answer
  } finally {
    await process.close()
  }
}

const explain = ({ match, config, routes }: Generation, { method, path, model }: ExplainQuestion): Explanation => {
  const full = fullPath(path, config.basePath)
  const found = match(method, full)
  if (found === undefined) throw new Error(`no route takes ${full}`)
  if ("allow" in found) throw new Error(`${full} takes ${found.allow.join(", ")}, not ${method}`)
  const { route, chain, bounds } = found.route
  const asked = route.fixed ?? (model === undefined ? undefined : modelNamed(config, model))
  return {
    route: `${route.method} ${config.basePath}${route.path}`,
    dialect: route.dialect,
    limit: route.limit,
    charge: route.charge,
    bounds,
    chain,
    ...(asked === undefined
      ? { takenBy: [], targets: [], price: [] }
      : explainModel(config, asked, { here: route, all: routes.map(one => one.route) })),
  }
}

/** Below `basePath`, as the router is asked. */
const fullPath = (asked: string, basePath: string): string => {
  const bare = asked.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "")
  const path = bare.startsWith("/") ? bare : `/${bare}`
  return path === basePath || path.startsWith(`${basePath}/`) ? path : basePath + path
}

const modelNamed = ({ catalog }: Config, name: string): Model => {
  const model = catalog.find(name)
  if (model !== undefined) return model
  const { vendors, models } = catalog.left
  const left = [...models].find(([current, { aliases }]) => current === name || aliases.includes(name))?.[1]
  if (left === undefined) throw new Error(`the catalog has no model ${name}`)
  const why = left.vendors.map(vendor => `${vendor} (${unsetText(vendors.get(vendor) ?? [])})`).join(", ")
  throw new Error(`${name} is left out, with its vendors: ${why}`)
}

/** `A is not set`, `A, B are not set`. */
export const unsetText = (variables: readonly string[]): string =>
  `${variables.join(", ")} ${variables.length === 1 ? "is" : "are"} not set`

type OfModel = Required<Pick<Explanation, "model" | "taken" | "takenBy" | "targets" | "price">>

const explainModel = (
  { basePath, catalog, vendors }: Config,
  model: Model,
  { here, all }: { readonly here: Route; readonly all: readonly Route[] },
): OfModel => ({
  model: model.name,
  taken: serves(here, model),
  takenBy: all.filter(route => serves(route, model)).map(({ method, path }) => `${method} ${basePath}${path}`),
  targets: model.targets.map(target => ({
    ...target,
    secrets: vendors.get(target.vendor)?.secrets.map(secret => secret.name) ?? [],
  })),
  price: priceLines(catalog.card(model, undefined)),
})

/** A route that accepts no models has no use for one, but for what it sells itself. */
const serves = (route: Route, model: Model): boolean =>
  route.fixed === model ||
  (model.offered && route.accepts !== undefined && takesModel(route, model) && !isKeptForFamily(route, model))

/** What the catalog offers and no route takes: clients would ask for it in vain. */
export const untaken = ({ config, routes }: Generation): readonly Model[] =>
  [...config.catalog.models.values()].filter(
    model => model.offered && !routes.some(({ route }) => serves(route, model)),
  )

const priceLines = (card: PriceCard | undefined): Explanation["price"] =>
  card === undefined ? [] : [...card.lines.map(lineOf), ...card.when.flatMap(rowLines)]

const lineOf = ({ item, text }: PriceLine) => ({ item, basis: text })

const rowLines = (row: PriceRow): Explanation["price"] => {
  const when = conditionText(row.if)
  const times = row.times === undefined ? [] : [{ item: "all", basis: `times ${approximate(row.times)}`, when }]
  return [...times, ...row.lines.map(line => ({ ...lineOf(line), when }))]
}

const conditionText = ({ prompt, service_tier }: PriceCondition): string =>
  [
    ...(prompt === undefined ? [] : [`prompt ${prompt.operator} ${prompt.tokens}`]),
    ...(service_tier === undefined ? [] : [`service tier ${service_tier}`]),
  ].join(", ")

const ignore = (): void => {}
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => silent }
