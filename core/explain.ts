/** What would happen to a call, from the configuration alone: nothing is listened on, nothing is sent. */

import type { Config } from "./catalog/load.ts"
import { buildGeneration, type Generation } from "./generation.ts"
import { openProcess } from "./process.ts"

export interface Explanation {
  readonly route: string
  readonly dialect: string
  readonly limit: string
  readonly charge: string
  /** The plugins that the call passes, outermost first. */
  readonly chain: readonly string[]
  readonly model?: string
  readonly targets: readonly {
    readonly vendor: string
    readonly model: string
    readonly weight?: number
    /** Names, never values. */
    readonly secrets: readonly string[]
  }[]
  readonly price: readonly { readonly item: string; readonly basis: string }[]
}

export interface ExplainQuestion {
  readonly method: string
  /** With or without `base_path`. */
  readonly path: string
  readonly model?: string
}

/** @throws Error in words when no route takes the call, or the catalog does not know the model */
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

const explain = ({ match, config }: Generation, { method, path, model }: ExplainQuestion): Explanation => {
  const full = path.startsWith(config.basePath) ? path : `${config.basePath}${path.startsWith("/") ? "" : "/"}${path}`
  const found = match(method, full)
  if (found === undefined) throw new Error(`no route takes ${full}`)
  if ("allow" in found) throw new Error(`${full} takes ${found.allow.join(", ")}, not ${method}`)
  const { route, chain } = found.route
  return {
    route: `${route.method} ${config.basePath}${route.path}`,
    dialect: route.dialect,
    limit: route.limit,
    charge: route.charge,
    chain,
    ...explainModel(config, model),
  }
}

const explainModel = (config: Config, name: string | undefined): Pick<Explanation, "model" | "targets" | "price"> => {
  if (name === undefined) return { targets: [], price: [] }
  const model = config.catalog.find(name)
  if (model === undefined) throw new Error(`the catalog has no model ${name}`)
  return {
    model: model.name,
    targets: model.targets.map(target => ({
      ...target,
      secrets: config.vendors.get(target.vendor)?.secrets.map(secret => secret.name) ?? [],
    })),
    price: (model.price?.lines ?? []).map(line => ({ item: line.item, basis: line.text })),
  }
}

const ignore = (): void => {}
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => silent }
