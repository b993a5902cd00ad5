/** One generation: the routes, chains and adapters of one configuration, swapped whole and torn down after its last call. */

import type { Adapter, Dialect } from "./adapter.ts"
import type { Config, PluginLine, Position } from "./catalog/load.ts"
import { ConfigError, problemText } from "./catalog/load.ts"
import { price } from "./catalog/price.ts"
import { compileSchema, type Problem } from "./catalog/schema.ts"
import { sandboxSecret } from "./catalog/secret.ts"
import { GatewayError } from "./errors.ts"
import { bodyOf, rawBody, type ScannedBody, scanOptionsOf } from "./http/body.ts"
import { Exchange, type ExchangeContext, type VendorTable } from "./http/exchange.ts"
import { compileFields, type FieldFilter } from "./http/fields.ts"
import { ChainError, type CompiledRoute, compileRoute, type NamedStep } from "./http/pipeline.ts"
import { plain } from "./http/plain.ts"
import { createRouter, type RouteError } from "./http/router.ts"
import type { Site } from "./http/serving.ts"
import { runTunnel } from "./http/tunnel.ts"
import { type AnyPlugin, type LoadedAdapters, loadAdapters, loadPlugins, type ReadyPlugin } from "./loader.ts"
import type { ChildLog } from "./observe/log.ts"
import type { MetricsHub } from "./observe/metrics.ts"
import type { JsonSchema, Secret, Vendor } from "./offer.ts"
import type { Body, Clock, Host, Ledger, Route, Teardown } from "./plugin.ts"
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
    await assembly.tearDown()
    throw error
  }
}

class Assembly {
  readonly #config: Config
  readonly #parts: ProcessParts
  readonly #adapters: Map<string, Adapter>
  readonly #dialects = new Map<string, Dialect>([[plain.name, plain]])
  readonly #vendors: ReadonlyMap<string, Vendor>
  /** Where the configuration names each plugin. */
  readonly #lines = new Map<string, PluginLine>()
  readonly #steps: NamedStep[] = []
  readonly #routes: { readonly plugin: string; readonly route: Route }[] = []
  readonly #teardowns: Teardown[] = []

  constructor(config: Config, parts: ProcessParts, adapters: LoadedAdapters) {
    this.#config = config
    this.#parts = parts
    this.#adapters = new Map(adapters.byName)
    for (const dialect of adapters.dialects) this.#dialects.set(dialect.name, dialect)
    this.#vendors = withOrigin(config.vendors, parts.sandboxOrigin)
  }

  async add(plugin: ReadyPlugin): Promise<void> {
    if (plugin.line !== undefined) this.#lines.set(plugin.name, plugin.line)
    const teardown = await plugin.setup(this.#hostOf(plugin))
    if (teardown !== undefined) this.#teardowns.push(teardown)
  }

  finish(): Generation {
    const table = this.#vendorTable()
    const routes = this.#routes.map(({ plugin, route }) => {
      if (!this.#dialects.has(route.dialect))
        throw this.#problem(plugin, `${route.path} of plugin ${plugin}: no dialect is called "${route.dialect}"`)
      this.#checkWire(route)
      return this.#compile(route, plugin, table)
    })
    const plainRoutes = this.#router(routes.filter(({ route }) => route.upgrade !== true))
    const upgradeRoutes = this.#router(routes.filter(({ route }) => route.upgrade === true))
    let calls = 0
    let onIdle: (() => void) | undefined
    return {
      config: this.#config,
      routes,
      vendors: this.#vendors,
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
        await this.tearDown()
      },
    }
  }

  /** A relay passes bytes on: a model of its family needs a vendor that speaks them. */
  #checkWire({ method, path, accepts }: Route): void {
    if (accepts?.wire === undefined) return
    for (const model of this.#config.catalog.models.values()) {
      if (model.family !== accepts.family || !accepts.types.includes(model.type) || model.targets.length === 0) continue
      if (model.targets.some(({ vendor }) => this.#adapterOf(vendor).name === accepts.wire)) continue
      const at = this.#config.places.models.get(model.name)!
      const advice = "give it a target that does, or name another family"
      const problem = `the family is ${model.family}, but no target speaks ${accepts.wire}, as ${method} ${path} needs: ${advice}`
      throw new ConfigError([problemText(at, `models.${model.name}`, problem)])
    }
  }

  async tearDown(): Promise<void> {
    for (const teardown of this.#teardowns.splice(0).reverse()) {
      try {
        await teardown()
      } catch (cause) {
        this.#parts.log.error({ err: cause }, "a plugin could not be torn down")
      }
    }
  }

  #compile(route: Route, owner: string, table: VendorTable): CompiledRoute {
    const { metrics, clock, exchange } = this.#parts
    const checkQuery = route.querySchema === undefined ? undefined : compileSchema(route.querySchema, "query")
    try {
      return compileRoute(route, this.#steps, {
        owner,
        readBody: readBodyOf(route),
        checkQuery:
          checkQuery === undefined ? undefined : query => refuseInvalid(checkQuery(Object.fromEntries(query))),
        exchange: (call, prepare) => new Exchange(call, prepare, table, exchange).run(),
        tunnel: (call, target, path) => runTunnel(call, target, path, table, exchange),
        now: clock.now,
        observe: (plugin, seconds) => metrics.product("plugin_duration_seconds").child(plugin).observe(seconds),
      })
    } catch (error) {
      const plugin = error instanceof ChainError ? error.plugin : owner
      throw this.#problem(plugin, (error as Error).message)
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
      use: step => void this.#steps.push({ plugin: plugin.name, step, foreign: plugin.foreign }),
      route: route => void this.#routes.push({ plugin: plugin.name, route }),
      dialect: dialect => void this.#dialects.set(dialect.name, dialect),
      adapter: adapter => void this.#adapters.set(adapter.name, adapter),
      error: (code, message, options) => new GatewayError(code, message, options),
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
      mounts: family => config.mounts[family] ?? [family],
      shared: <T>(key: string, make: () => T): T => {
        if (!shared.has(key)) shared.set(key, make())
        return shared.get(key) as T
      },
      price,
    }
  }

  #router(routes: readonly CompiledRoute[]) {
    try {
      return createRouter(routes, this.#config.basePath)
    } catch (error) {
      const { route, message } = error as RouteError
      const owner = this.#routes.findLast(
        ({ route: { method, path } }) => method === route.method && path === route.path,
      )
      throw this.#problem(owner?.plugin, message)
    }
  }

  get #top(): Position {
    return { file: this.#config.file, line: 1, column: 1 }
  }

  /** At the line of the plugin, else where the pipeline begins. */
  #problem(plugin: string | undefined, message: string): ConfigError {
    const line = this.#lines.get(plugin ?? "") ?? this.#config.plugins[0]
    return new ConfigError([line === undefined ? problemText(this.#top, "", message) : line.problem([], message)])
  }
}

/** Below this a body is parsed whole (as fast as a scan); above it only the fields that the schema names are. */
const parsedWholeMax = 64 * 1024

/** Asks for the types of some top-level scalars and nothing else, as relays do: there is no need to parse the whole. */
const isShallow = ({ type, required, properties, ...others }: JsonSchema): boolean => {
  const schemas = (properties ?? {}) as Readonly<Record<string, JsonSchema>>
  const names = (required ?? []) as readonly string[]
  return (
    type === "object" &&
    Object.keys(others).length === 0 &&
    names.every(name => Object.hasOwn(schemas, name)) &&
    Object.values(schemas).every(schema => scalars.has(schema.type))
  )
}
const scalars: ReadonlySet<unknown> = new Set(["string", "boolean", "integer", "number"])

const readBodyOf = (route: Route): ((bytes: Buffer) => ScannedBody) => {
  if (route.raw === true) return rawBody
  const properties = Object.keys((route.schema?.properties as JsonSchema | undefined) ?? {})
  const wholeMax = route.schema !== undefined && isShallow(route.schema) ? 0 : parsedWholeMax
  const scan = scanOptionsOf({ ...route, reads: [...(route.reads ?? []), ...properties] })
  const check = route.schema === undefined ? undefined : compileSchema(route.schema, "body")
  return bytes => {
    const body = bodyOf(bytes, scan)
    if (check !== undefined) refuseInvalid(check(bytes.length <= wholeMax ? body.json() : fieldsOf(body, properties)))
    return body
  }
}

const fieldsOf = (body: Body, names: readonly string[]): Record<string, unknown> => {
  const out: Record<string, unknown> = Object.create(null)
  for (const name of names) {
    const value = body.field(name)
    if (value !== undefined) out[name] = value
  }
  return out
}

const refuseInvalid = (problems: readonly Problem[]): void => {
  const first = problems[0]
  if (first === undefined) return
  const param = first.loc.slice(1).join(".")
  throw new GatewayError("validation_failed", `${param === "" ? first.loc.join(".") : param}: ${first.msg}`, {
    detail: problems,
    ...(param === "" ? {} : { param }),
  })
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
