/** Plugins and adapters: found by name, file or package, checked before anything of theirs runs. */

import { readdir } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, extname, isAbsolute, join, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Adapter, Dialect } from "./adapter.ts"
import type { Config, PluginLine } from "./catalog/load.ts"
import { ConfigError, problemText } from "./catalog/load.ts"
import { schemaFault, validateOptions } from "./catalog/schema.ts"
import type { JsonSchema } from "./offer.ts"
import type { Host, Plugin, Teardown } from "./plugin.ts"

/** In a clone `.ts`, in the package `.js`. */
const extension = extname(fileURLToPath(import.meta.url))
const builtInFolder = join(dirname(fileURLToPath(import.meta.url)), "..", "plugins")
/** Folders beside the plugins that are something else. */
const notPlugins = new Set(["vendors", "sandbox"])
const nameForm = /^[a-z][a-z0-9-]*$/

/** A plugin with its options as written, checked and completed. */
export interface ReadyPlugin {
  readonly name: string
  /** False: ours, whose metrics bear no prefix. */
  readonly foreign: boolean
  /** Where the configuration names it; absent for endpoints that `all` brings. */
  readonly line?: PluginLine
  setup(host: Host): Promise<Teardown | undefined>
}

/** A plugin whatever its options are; `never` because only the plugin itself knows them. */
export type AnyPlugin = Plugin<never>

/** Each line of `plugins`, then those given, then the endpoints. */
export const loadPlugins = async (config: Config, given: readonly AnyPlugin[]): Promise<readonly ReadyPlugin[]> => {
  const pipeline = await Promise.all(config.plugins.map(line => loadLine(line)))
  const endpoints =
    config.endpoints === "all"
      ? await builtInEndpoints()
      : await Promise.all(config.endpoints.map(line => loadLine(line)))
  return [...pipeline, ...given.map(plugin => ready(plugin, defaultsOf(plugin), true)), ...endpoints]
}

/** A module of the sandbox, which starts only when the configuration says so. */
export const loadSandbox = (): Promise<unknown> => importFile(join(builtInFolder, "sandbox", `index${extension}`))

// ---- plugins ----

const builtInEndpoints = async (): Promise<readonly ReadyPlugin[]> => {
  const names = await builtInNames(builtInFolder)
  const plugins = await Promise.all(
    names
      .filter(name => !notPlugins.has(name))
      .map(async name => ({ name, plugin: await importDefault(await builtInFile(builtInFolder, name)) })),
  )
  return plugins.flatMap(({ plugin }) =>
    isPlugin(plugin) && plugin.kind === "endpoint" ? [ready(plugin, defaultsOf(plugin), false)] : [],
  )
}

const noOptions: JsonSchema = { type: "object", additionalProperties: false }

const defaultsOf = (plugin: AnyPlugin): unknown => validateOptions(plugin.options ?? noOptions, {}).value

const loadLine = async (line: PluginLine): Promise<ReadyPlugin> => {
  const { file, foreign } = await locate(line)
  const found = await importDefault(file).catch(cause => {
    throw refusal(line, `cannot be loaded: ${(cause as Error).message}`)
  })
  if (!isPlugin(found)) throw refusal(line, "is no plugin: its default export needs name, api and setup")
  if ((found as { api: unknown }).api !== 1)
    throw refusal(line, `speaks plugin api ${String((found as { api: unknown }).api)}; this gateway speaks api 1`)
  if (!nameForm.test(found.name))
    throw refusal(line, `has the name "${found.name}", which must match ${nameForm.source}`)
  return { ...ready(found, optionsOf(found, line), foreign), line }
}

const optionsOf = (plugin: AnyPlugin, line: PluginLine): unknown => {
  const schema = plugin.options ?? noOptions
  const fault = schemaFault(schema)
  if (fault !== undefined) throw refusal(line, `has a broken options schema: ${fault}`)
  const { value, problems } = validateOptions(schema, line.options ?? {})
  if (problems.length === 0) return value
  throw new ConfigError(problems.map(problem => line.problem(problem.loc, problem.msg)))
}

const ready = (plugin: AnyPlugin, options: unknown, foreign: boolean): ReadyPlugin => ({
  name: plugin.name,
  foreign,
  setup: async host => ((await plugin.setup(host, options as never)) as Teardown | undefined) ?? undefined,
})

const isPlugin = (value: unknown): value is AnyPlugin =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as { name?: unknown }).name === "string" &&
  typeof (value as { setup?: unknown }).setup === "function"

const refusal = (line: PluginLine, message: string): ConfigError =>
  new ConfigError([line.problem([], `plugin ${line.name} ${message}`)])

const isPath = (name: string): boolean => name.startsWith(".") || isAbsolute(name)

const locate = async (line: PluginLine): Promise<{ file: string; foreign: boolean }> => {
  if (isPath(line.name)) return { file: resolve(dirname(line.at.file), line.name), foreign: true }
  const own = await builtInFile(builtInFolder, line.name).catch(() => undefined)
  if (own !== undefined) return { file: own, foreign: false }
  try {
    return { file: createRequire(line.at.file).resolve(line.name), foreign: true }
  } catch {
    throw refusal(line, "is neither built in nor an installed package; a file needs a path that starts with ./")
  }
}

// ---- adapters ----

export interface LoadedAdapters {
  readonly byName: ReadonlyMap<string, Adapter>
  readonly dialects: readonly Dialect[]
}

/** The built-in adapters, and those that vendors name by file or package. */
export const loadAdapters = async (config: Config): Promise<LoadedAdapters> => {
  const folder = join(builtInFolder, "vendors")
  const byName = new Map<string, Adapter>()
  const dialects: Dialect[] = []
  const add = (name: string, module: { default?: unknown; dialects?: unknown }): boolean => {
    const adapter = module.default as Partial<Adapter> | undefined
    if (typeof adapter?.authorise !== "function" || typeof adapter.fault !== "function") return false
    byName.set(name, adapter as Adapter)
    dialects.push((adapter as Adapter).dialect, ...((module.dialects as readonly Dialect[] | undefined) ?? []))
    return true
  }
  for (const name of await builtInNames(folder)) add(name, await importFile(await builtInFile(folder, name)))
  for (const vendor of config.vendors.values()) {
    if (byName.has(vendor.adapter)) continue
    const file = isPath(vendor.adapter)
      ? resolve(dirname(config.file), vendor.adapter)
      : createRequire(config.file).resolve(vendor.adapter)
    if (!add(vendor.adapter, await importFile(file))) {
      const at = config.places.vendors.get(vendor.name)!
      throw new ConfigError([problemText(at, `vendors.${vendor.name}.adapter`, `${vendor.adapter} exports no adapter`)])
    }
  }
  return { byName, dialects }
}

// ---- files ----

/** Files and folders with an `index`, without extension. */
const builtInNames = async (folder: string): Promise<readonly string[]> => {
  const entries = await readdir(folder, { withFileTypes: true })
  const names = entries.flatMap(entry => {
    if (entry.isDirectory()) return [entry.name]
    return extname(entry.name) === extension && !entry.name.endsWith(".d.ts")
      ? [entry.name.slice(0, -extension.length)]
      : []
  })
  const withFile = await Promise.all(
    names.map(async name => ((await builtInFile(folder, name).catch(() => undefined)) === undefined ? [] : [name])),
  )
  return withFile.flat().sort()
}

const builtInFile = async (folder: string, name: string): Promise<string> => {
  if (!nameForm.test(name)) throw new Error(`no plugin ${name}`)
  const entries = await readdir(folder)
  if (entries.includes(`${name}${extension}`)) return join(folder, `${name}${extension}`)
  if (!entries.includes(name)) throw new Error(`no plugin ${name}`)
  const inside = await readdir(join(folder, name))
  if (!inside.includes(`index${extension}`)) throw new Error(`no plugin ${name}`)
  return join(folder, name, `index${extension}`)
}

const importFile = (file: string): Promise<{ default?: unknown; dialects?: unknown }> =>
  import(pathToFileURL(file).href)

const importDefault = async (file: string): Promise<unknown> => (await importFile(file)).default
