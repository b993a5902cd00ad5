/** One generation: the routes, chains and adapters of one configuration, swapped whole and torn down after its last call. */

import type { Adapter, Dialect } from "./adapter.ts"
import { adapterFault, checkModels, checkVendors, type LoadedAdapters, loadAdapters } from "./adapters.ts"
import { type Config, ConfigError } from "./catalog/load.ts"
import { price } from "./catalog/price.ts"
import { defaultMounts } from "./catalog/product.ts"
import { sandboxSecret } from "./catalog/secret.ts"
import { type ErrorCode, type ErrorOptions, errorTable, GatewayError } from "./errors.ts"
import { Exchange, type ExchangeContext, type VendorTable } from "./http/exchange.ts"
import { compileFields, type FieldFilter } from "./http/fields.ts"
import { ChainError, type CompiledRoute, compileRoute, type NamedStep } from "./http/pipeline.ts"
import { createRouter, type RouteError } from "./http/router.ts"
import type { Site } from "./http/serving.ts"
import { runTunnel } from "./http/tunnel.ts"
import { plain } from "./kit/dialects.ts"
import { type AnyPlugin, loadPlugins, type ReadyPlugin } from "./loader.ts"
import type { ChildLog } from "./observe/log.ts"
import type { MetricsHub } from "./observe/metrics.ts"
import type { StrayListener } from "./observe/strays.ts"
import type { Secret, Vendor } from "./offer.ts"
import type { Clock, Host, Ledger, Route, Step } from "./plugin.ts"
import { queryCheckOf, readBodyOf } from "./route-body.ts"
import { Setups } from "./setups.ts"
import type { Store } from "./state/store.ts"

/** What belongs to the process and outlives every generation. */
export interface ProcessParts {
  readonly store: Store
  readonly ledger: Ledger
  readonly metrics: MetricsHub
  readonly log: ChildLog
  readonly clock: Clock
  readonly random: () => number
  readonly day: (at: number) => string
  readonly exchange: ExchangeContext
  readonly shared: Map<string, unknown>
  /** With `sandbox: true`: stands in for every vendor's scheme, host and port. */
  readonly sandboxOrigin: string | undefined
  readonly plugins: readonly AnyPlugin[]
}

export interface Generation extends Site {
  readonly config: Config
  readonly routes: readonly CompiledRoute[]
  readonly vendors: ReadonlyMap<string, Vendor>
  /** The names of all plugins. */
  readonly plugins: ReadonlySet<string>
  /** Those that want to know of requests that met no route. */
  readonly onStray: readonly StrayListener[]
  /** Tears the plugins down after the last call. */
  retire(): Promise<void>
}

/** Builds everything or throws; nothing of a failed generation stays. */
export const buildGeneration = async (config: Config, parts: ProcessParts): Promise<Generation> => {
  const [adapters, plugins] = await Promise.all([loadAdapters(config), loadPlugins(config, parts.plugins)])
  const assembly = new Assembly(config, parts, adapters)
  try {
    for (const plugin of plugins) await assembly.add(plugin)
    return assembly.finish()
  } catch (error) {
    await assembly.setups.tearDown()
    throw error
  }
}

/** A step, and who brought it. */
interface OwnStep extends NamedStep {
  readonly owner: ReadyPlugin
}

interface OwnRoute {
  readonly owner: ReadyPlugin
  readonly route: Route
}

class Assembly {
  readonly setups: Setups
  readonly #config: Config
  readonly #parts: ProcessParts
  readonly #loaded: LoadedAdapters
  readonly #adapters: Map<string, Adapter>
  readonly #dialects = new Map<string, Dialect>([[plain.name, plain]])
  readonly #vendors: ReadonlyMap<string, Vendor>
  readonly #plugins = new Set<string>()
  readonly #steps: OwnStep[] = []
  readonly #routes: OwnRoute[] = []
  readonly #onStray: StrayListener[] = []
  readonly #families = new Set<string>(Object.keys(defaultMounts))

  constructor(config: Config, parts: ProcessParts, adapters: LoadedAdapters) {
    this.setups = new Setups({ clock: parts.clock, log: parts.log, stepMs: config.limits.stepMs })
    this.#config = config
    this.#parts = parts
    this.#loaded = adapters
    this.#adapters = new Map(adapters.byName)
    for (const dialect of adapters.dialects) this.#dialects.set(dialect.name, dialect)
    this.#vendors = withOrigin(config.vendors, parts.sandboxOrigin)
  }

  async add(plugin: ReadyPlugin): Promise<void> {
    this.#plugins.add(plugin.name)
    await this.setups.add(plugin, this.#hostOf(plugin))
  }

  finish(): Generation {
    this.#checkMounts()
    this.#checkGuards()
    checkVendors(this.#config, this.#adapters, this.#loaded)
    const table = this.#vendorTable()
    for (const { owner, route } of this.#routes) {
      if (!this.#dialects.has(route.dialect))
        throw problem(owner, `${route.path} of plugin ${owner.name}: no dialect is called "${route.dialect}"`)
    }
    checkModels(
      this.#config,
      this.#routes.map(({ route }) => route),
      vendor => this.#adapterOf(vendor),
    )
    const routes = this.#routes.map(one => this.#compile(one, table))
    const plainRoutes = this.#router(routes.filter(({ route }) => route.upgrade !== true))
    const upgradeRoutes = this.#router(routes.filter(({ route }) => route.upgrade === true))
    let calls = 0
    let onIdle: (() => void) | undefined
    return {
      config: this.#config,
      routes,
      vendors: this.#vendors,
      plugins: this.#plugins,
      onStray: this.#onStray,
      match: plainRoutes.match,
      matchUpgrade: path => upgradeRoutes.match("GET", path),
      dialect: table.dialect,
      enter: () => {
        calls += 1
        return () => {
          calls -= 1
          if (calls === 0) onIdle?.()
        }
      },
      retire: async () => {
        if (calls > 0) await new Promise<void>(resolve => (onIdle = resolve))
        await this.setups.tearDown()
      },
    }
  }

  /** A family that nobody asks for is a slip of the keyboard, and its prefixes would lead nowhere. */
  #checkMounts(): void {
    const { mounts } = this.#config.places
    const problems = [...mounts].flatMap(([family, place]) =>
      this.#families.has(family)
        ? []
        : [place.problem([], `expected a native family, one of: ${[...this.#families].join(", ")}`)],
    )
    if (problems.length > 0) throw new ConfigError(problems)
  }

  /** A guard of ours listed twice would count, hold or log each call twice. */
  #checkGuards(): void {
    const owners = new Set(this.#steps.filter(({ foreign }) => !foreign).map(({ owner }) => owner))
    const names = new Set<string>()
    for (const owner of owners) {
      if (names.has(owner.name)) throw problem(owner, `${owner.name} is listed twice: remove one of the two lines`)
      names.add(owner.name)
    }
  }

  #compile({ route, owner }: OwnRoute, table: VendorTable): CompiledRoute {
    const { metrics, clock, exchange } = this.#parts
    try {
      return compileRoute(route, this.#steps, {
        owner: owner.name,
        foreign: owner.foreign,
        readBody: readBodyOf(route),
        checkQuery: queryCheckOf(route),
        exchange: (call, prepare) => new Exchange(call, prepare, table, exchange).run(),
        tunnel: (call, target, path) => runTunnel(call, target, path, table, exchange),
        steady: clock.steady,
        observe: (plugin, seconds) => metrics.product("plugin_duration_seconds").child(plugin).observe(seconds),
      })
    } catch (error) {
      const step = error instanceof ChainError ? this.#steps.find(one => one === error.step) : undefined
      throw problem(step?.owner ?? owner, (error as Error).message)
    }
  }

  #vendorTable(): VendorTable {
    const filters = new Map<string, FieldFilter>()
    for (const vendor of this.#vendors.values()) {
      filters.set(vendor.name, compileFields(this.#adapterOf(vendor.name), vendor, this.#config.sandbox))
    }
    return {
      vendor: name => present(this.#vendors.get(name), `vendor ${name}`),
      adapter: name => this.#adapterOf(name),
      filter: name => present(filters.get(name), `vendor ${name}`),
      dialect: name => present(this.#dialects.get(name), `dialect ${name}`),
    }
  }

  #adapterOf(vendor: string): Adapter {
    const { adapter } = present(this.#vendors.get(vendor), `vendor ${vendor}`)
    return present(this.#adapters.get(adapter), `adapter ${adapter}`)
  }

  #hostOf(plugin: ReadyPlugin): Host {
    const { metrics, log, clock, random, store, ledger, day, shared } = this.#parts
    const config = this.#config
    return {
      use: step =>
        void this.#steps.push({
          plugin: plugin.name,
          step: withFunction(step, "run", "a step"),
          foreign: plugin.foreign,
          owner: plugin,
        }),
      route: route => void this.#routes.push({ owner: plugin, route: withFunction(route, "handle", "a route") }),
      dialect: dialect => this.#addDialect(dialect),
      adapter: adapter => this.#addAdapter(adapter),
      onStray: tell => void this.#onStray.push({ plugin: plugin.name, tell }),
      error: errorOf,
      metrics: metrics.forPlugin(plugin.name),
      log: log.child({ plugin: plugin.name }),
      clock,
      random,
      store,
      ledger,
      catalog: config.catalog,
      adapterOf: vendor => this.#adapterOf(vendor),
      dialectOf: name => this.#dialects.get(name),
      day,
      timezone: config.timezone,
      mounts: family => {
        this.#families.add(family)
        return config.mounts[family] ?? [family]
      },
      shared: <T>(key: string, make: () => T): T => {
        if (!shared.has(key)) shared.set(key, make())
        return shared.get(key) as T
      },
      price,
    }
  }

  #addAdapter(adapter: Adapter): void {
    const fault = adapterFault(adapter)
    if (fault !== undefined) throw new Error(`host.adapter: ${fault}`)
    if (this.#adapters.has(adapter.name)) throw new Error(`host.adapter: the name ${adapter.name} is taken`)
    this.#addDialect(adapter.dialect)
    this.#adapters.set(adapter.name, adapter)
  }

  /** An adapter may speak a dialect that is there; two of one name would be one. */
  #addDialect(dialect: Dialect): void {
    if ((this.#dialects.get(dialect.name) ?? dialect) !== dialect)
      throw new Error(`host.dialect: the name ${dialect.name} is taken`)
    this.#dialects.set(dialect.name, dialect)
  }

  #router(routes: readonly CompiledRoute[]) {
    try {
      return createRouter(routes, this.#config.basePath)
    } catch (error) {
      const { route, message } = error as RouteError
      const same = this.#routes.filter(one => one.route.method === route.method && one.route.path === route.path)
      // Ours was there first, whatever the order of loading.
      const second = same.findLast(one => one.owner.foreign) ?? same.findLast(one => one.owner.listed) ?? same.at(-1)
      const { owner } = present(second, `route ${route.path}`)
      const owners = [...new Set(same.map(one => one.owner))].map(one => one.name)
      throw problem(owner, owners.length > 1 ? `${message}, of plugins ${owners.join(" and ")}` : message)
    }
  }
}

const problem = (owner: ReadyPlugin, message: string): ConfigError => new ConfigError([owner.problem(message)])

/** Told in `setup`, at the plugin's line, and not by the first call. */
const withFunction = <T extends Step | Route>(value: T, name: keyof T & string, what: string): T => {
  if (typeof value?.[name] !== "function") throw new Error(`${what} needs a function ${name}`)
  return value
}

const errorOf = (code: ErrorCode, message: string, options?: ErrorOptions): GatewayError => {
  if (!Object.hasOwn(errorTable, code)) throw new Error(`there is no error code "${code}"`)
  return new GatewayError(code, message, options)
}

const present = <T>(value: T | undefined, what: string): T => {
  if (value === undefined) throw new Error(`there is no ${what}`)
  return value
}

/** What a vendor without credentials (a server of one's own) is called with; in the sandbox any word will do. */
const noSecret = (sandbox: boolean): Secret => ({ name: "none", reveal: () => (sandbox ? sandboxSecret : "") })

/** The vendor's own path prefix stays: an adapter's paths are below it. */
const withOrigin = (vendors: ReadonlyMap<string, Vendor>, origin: string | undefined): ReadonlyMap<string, Vendor> => {
  const moved = [...vendors].map(([name, vendor]): [string, Vendor] => {
    const secrets = vendor.secrets.length > 0 ? vendor.secrets : [noSecret(origin !== undefined)]
    if (origin === undefined) return [name, { ...vendor, secrets }]
    const { pathname } = new URL(vendor.origin)
    return [name, { ...vendor, secrets, origin: pathname === "/" ? origin : `${origin}${pathname}` }]
  })
  return new Map(moved)
}
