/** Adapters: built in, of a file or a package that a vendor names, or brought by a plugin; and what vendors ask of them. */

import { dirname, join, resolve } from "node:path"
import type { Adapter, Dialect } from "./adapter.ts"
import { type Config, ConfigError } from "./catalog/load.ts"
import { noOptions, schemaFault, validateOptions } from "./catalog/schema.ts"
import { isKeptForFamily, takesModel } from "./kit/takes.ts"
import { builtIn, builtInFolder, importFile, isPath, type Module } from "./loader.ts"
import type { Model, Vendor } from "./offer.ts"
import { packageFile } from "./packages.ts"
import type { Route } from "./plugin.ts"

export interface LoadedAdapters {
  readonly byName: ReadonlyMap<string, Adapter>
  readonly dialects: readonly Dialect[]
}

/**
 * The built-in adapters, and those that vendors name by file or package. Other names are left to plugins.
 *
 * @throws ConfigError at the vendor's `adapter` when that cannot be loaded or is none
 */
export const loadAdapters = async (config: Config): Promise<LoadedAdapters> => {
  const modules = new Map<string, Module>()
  const folder = join(builtInFolder, "vendors")
  for (const [name, file] of await builtIn(folder)) {
    const module = await importFile(file)
    if (adapterFault(module.default) === undefined) modules.set(name, module)
  }
  for (const vendor of config.vendors.values()) {
    if (modules.has(vendor.adapter)) continue
    const module = await loadNamed(vendor, config)
    if (module !== undefined) modules.set(vendor.adapter, module)
  }
  return {
    byName: new Map([...modules].map(([name, module]) => [name, module.default as Adapter])),
    dialects: [...modules.values()].flatMap(module => [
      (module.default as Adapter).dialect,
      ...((module.dialects as readonly Dialect[] | undefined) ?? []),
    ]),
  }
}

const loadNamed = async (vendor: Vendor, config: Config): Promise<Module | undefined> => {
  const { name, adapter } = vendor
  const refusal = (message: string) =>
    new ConfigError([config.places.vendors.get(name)!.problem(["adapter"], `${adapter} ${message}`)])
  const file = isPath(adapter) ? resolve(dirname(config.file), adapter) : packageFile(adapter, config.file)
  if (file === undefined) return undefined
  const module = await importFile(file).catch(cause => {
    throw refusal(`cannot be loaded: ${(cause as Error).message}`)
  })
  const fault = adapterFault(module.default)
  if (fault !== undefined) throw refusal(`exports no adapter by default: ${fault}`)
  return module
}

// ---- what an adapter must have ----

const isFunction = (value: unknown): boolean => typeof value === "function"
const isText = (value: unknown): boolean => typeof value === "string" && value !== ""
const isList = (value: unknown): boolean => Array.isArray(value)
const isApis = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.values(value).every(api => isFunction(api?.usage) && isFunction(api?.sign))

const parts: Readonly<Record<string, (value: unknown) => boolean>> = {
  name: isText,
  authorise: isFunction,
  fault: isFunction,
  apis: isApis,
  "dialect.name": isText,
  "dialect.render": isFunction,
  "dialect.streamError": isFunction,
  "fields.toVendor": isList,
  "fields.toClient": isList,
  "fields.query": isList,
}

/** What keeps a value from being an adapter, in words. */
export const adapterFault = (value: unknown): string | undefined => {
  const missing = Object.keys(parts).filter(path => !parts[path]!(at(value, path.split("."))))
  return missing.length === 0 ? undefined : `missing or of the wrong kind: ${missing.join(", ")}`
}

const at = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, step) => (inner as Record<string, unknown> | null | undefined)?.[step], value)

// ---- what vendors and models ask of them ----

/**
 * Each vendor has its adapter, with options that the adapter takes. Asked when all plugins have brought theirs.
 *
 * @throws ConfigError with every vendor that has not
 */
export const checkVendors = (config: Config, adapters: ReadonlyMap<string, Adapter>, builtIn: LoadedAdapters): void => {
  const problems = [...config.vendors.values()].flatMap(vendor => {
    const place = config.places.vendors.get(vendor.name)!
    const adapter = adapters.get(vendor.adapter)
    if (adapter === undefined) return [place.problem(["adapter"], unknownAdapter(vendor.adapter, builtIn))]
    const schema = adapter.options ?? noOptions
    const fault = schemaFault(schema)
    if (fault !== undefined)
      return [place.problem(["adapter"], `${adapter.name} has a broken options schema: ${fault}`)]
    const { problems } = validateOptions(schema, vendor.options)
    return problems.map(({ loc, msg }) => place.problem(["options", ...loc], msg))
  })
  if (problems.length > 0) throw new ConfigError(problems)
}

const unknownAdapter = (name: string, { byName }: LoadedAdapters): string => {
  const names = [...byName.keys()].filter(one => !isPath(one))
  const hub = names.find(one => isHub(byName.get(one)!))
  const advice = hub === undefined ? "" : `; for the wire of chat completions write adapter: ${hub}`
  return `there is no adapter ${name}: it is neither built in, nor an installed package, nor brought by a plugin; built in are ${names.join(", ")}${advice}`
}

/** Its chunks are the hub's own. */
const isHub = ({ chat }: Adapter): boolean => chat !== undefined && chat.stream === undefined

/**
 * What routes need of the vendors of their models.
 *
 * @throws ConfigError at the first model that a route takes and a vendor of it cannot serve
 */
export const checkModels = (config: Config, routes: readonly Route[], adapterOf: (vendor: string) => Adapter): void => {
  for (const model of config.catalog.models.values()) {
    for (const route of routes) {
      const problem = wireProblem(route, model, adapterOf) ?? servingProblem(route, model, routes, adapterOf)
      if (problem !== undefined) throw new ConfigError([config.places.models.get(model.name)!.problem([], problem)])
    }
  }
}

type AdapterOf = (vendor: string) => Adapter

/** A relay passes bytes on: a model of its family needs a vendor that speaks them. */
const wireProblem = (route: Route, model: Model, adapterOf: AdapterOf): string | undefined => {
  const { method, path, accepts } = route
  if (!isOfWire(route, model) || model.targets.length === 0) return undefined
  if (model.targets.some(({ vendor }) => adapterOf(vendor).name === accepts?.wire)) return undefined
  const advice = "give it a target that does, or name another family"
  return `the family is ${model.family}, but no target speaks ${accepts?.wire}, as ${method} ${path} needs: ${advice}`
}

const isOfWire = ({ accepts }: Route, { family, type }: Model): boolean =>
  accepts?.wire !== undefined && accepts.family === family && accepts.types.includes(type)

/** A target that speaks the wire of a relay of its family is of use there, whatever else it cannot do. */
const servingProblem = (
  route: Route,
  model: Model,
  routes: readonly Route[],
  adapterOf: AdapterOf,
): string | undefined => {
  const { method, path, accepts } = route
  if (accepts?.servedBy === undefined || !takesModel(route, model) || isKeptForFamily(route, model)) return undefined
  const relayedBy = (wire: string) => routes.some(one => isOfWire(one, model) && one.accepts?.wire === wire)
  const useless = model.targets.find(({ vendor }) => {
    const adapter = adapterOf(vendor)
    return accepts.servedBy?.(adapter, model) === false && !relayedBy(adapter.name)
  })
  if (useless === undefined) return undefined
  const adapter = adapterOf(useless.vendor).name
  return `the type is ${model.type}, but the adapter ${adapter} of its vendor ${useless.vendor} cannot serve ${method} ${path}`
}
