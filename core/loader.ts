/** Plugins: found by name, file or package, checked before anything of theirs runs. */

import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { basename, dirname, extname, isAbsolute, join, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type Config, ConfigError, type PluginLine, problemText } from "./catalog/load.ts"
import { noOptions, schemaFault, validateOptions } from "./catalog/schema.ts"
import { packageFile } from "./packages.ts"
import type { Host, Plugin, Teardown } from "./plugin.ts"

/** In a clone `.ts`, in the package `.js`. */
const extension = extname(fileURLToPath(import.meta.url))
export const builtInFolder = join(dirname(fileURLToPath(import.meta.url)), "..", "plugins")
/** Folders beside the plugins that are something else. */
const notPlugins = new Set(["vendors", "sandbox"])
const nameForm = /^[a-z][a-z0-9-]*$/

/** A plugin with its options as written, checked and completed. */
export interface ReadyPlugin {
  readonly name: string
  /** The file, or the object that was given: two of one name are refused unless they have one source. */
  readonly source: unknown
  /** False: ours, whose metrics bear no prefix. */
  readonly foreign: boolean
  /** A line names it; else it is one of `endpoints: all`. */
  readonly listed: boolean
  /** What is wrong with it, at the place that names it: its line, else where the pipeline begins. */
  problem(message: string): string
  setup(host: Host): Promise<Teardown | undefined>
}

type Found = Pick<ReadyPlugin, "source" | "foreign" | "listed">

/** A plugin whatever its options are; `never` because only the plugin itself knows them. */
export type AnyPlugin = Plugin<never>

/**
 * Each line of `plugins`, then those given, then the endpoints.
 *
 * @throws ConfigError at the line of what cannot be loaded, is no plugin, has wrong options or a name that is taken
 */
export const loadPlugins = async (config: Config, given: readonly AnyPlugin[]): Promise<readonly ReadyPlugin[]> => {
  const pipeline = await Promise.all(config.plugins.map(line => loadLine(line)))
  const endpoints =
    config.endpoints === "all" ? await builtInEndpoints(config) : await Promise.all(config.endpoints.map(loadEndpoint))
  const added = given.map(plugin =>
    ready(plugin, givenLine(plugin, config), { source: plugin, foreign: true, listed: true }),
  )
  const all = [...pipeline, ...added, ...endpoints]
  refuseNamesakes(all)
  return all
}

/** Logs and metrics know a plugin by its name. Who is not ours has to take another one. */
const refuseNamesakes = (plugins: readonly ReadyPlugin[]): void => {
  const named = new Map<string, ReadyPlugin>()
  for (const plugin of plugins) {
    const first = named.get(plugin.name) ?? plugin
    named.set(plugin.name, first)
    if (first.source === plugin.source) continue
    const stranger = plugin.foreign ? plugin : first
    throw new ConfigError([
      stranger.problem(`plugin ${plugin.name}: another plugin has this name; give it one of its own`),
    ])
  }
}

/** Tests give plugins that no file names. */
const givenLine = ({ name }: AnyPlugin, { file }: Config): PluginLine => {
  const at = { file, line: 1, column: 1 }
  const problem: PluginLine["problem"] = (path, message) =>
    problemText(at, ["given plugins", name, ...path].join("."), message)
  return { name: String(name), options: undefined, at, problem }
}

/** A module of the sandbox, which starts only when the configuration says so. */
export const loadSandbox = (): Promise<unknown> => importFile(join(builtInFolder, "sandbox", `index${extension}`))

// ---- plugins ----

const builtInEndpoints = async (config: Config): Promise<readonly ReadyPlugin[]> => {
  const files = [...(await builtIn(builtInFolder))].filter(([name]) => !notPlugins.has(name))
  const found = await Promise.all(files.map(async ([, file]) => ({ file, plugin: await importDefault(file) })))
  return found.flatMap(({ file, plugin }) =>
    isPlugin(plugin) && plugin.kind === "endpoint"
      ? [ready(plugin, lineOfAll(plugin, config), { source: file, foreign: false, listed: false })]
      : [],
  )
}

/** No line names the endpoints of `all`: their problems are told where the pipeline begins. */
const lineOfAll = ({ name }: AnyPlugin, { file, plugins: [first] }: Config): PluginLine => {
  const at = first?.at ?? { file, line: 1, column: 1 }
  const problem: PluginLine["problem"] = (_, message) => first?.problem([], message) ?? problemText(at, "", message)
  return { name, options: undefined, at, problem }
}

const loadLine = async (line: PluginLine): Promise<ReadyPlugin> => {
  const { found, ...from } = await foundAt(line)
  return ready(found, line, from)
}

/** A guard of ours here would stand behind all others, and the list would hide it. */
const loadEndpoint = async (line: PluginLine): Promise<ReadyPlugin> => {
  const { found, ...from } = await foundAt(line)
  if (!from.foreign && isPlugin(found) && found.kind !== "endpoint")
    throw refusal(line, "is not an endpoint; list it under plugins")
  return ready(found, line, from)
}

const foundAt = async (line: PluginLine): Promise<Found & { readonly found: unknown }> => {
  const { file, foreign } = await locate(line)
  const found = await importDefault(file).catch(cause => {
    throw refusal(line, `cannot be loaded: ${(cause as Error).message}`)
  })
  return { found, source: file, foreign, listed: true }
}

/** The same checks, wherever it came from. */
const ready = (found: unknown, line: PluginLine, from: Found): ReadyPlugin => {
  if (!isPlugin(found)) throw refusal(line, "is not a plugin: its default export needs name, api and setup")
  const { name, api }: { readonly name: string; readonly api: unknown } = found
  if (api !== 1) throw refusal(line, `speaks plugin api ${String(api)}; this gateway speaks api 1`)
  if (!nameForm.test(name)) throw refusal(line, `has the name "${name}", which must match ${nameForm.source}`)
  const options = optionsOf(found, line)
  return {
    ...from,
    name,
    problem: message => line.problem([], message),
    setup: async host => {
      const teardown: unknown = await found.setup(host, options as never)
      return typeof teardown === "function" ? (teardown as Teardown) : undefined
    },
  }
}

const optionsOf = (plugin: AnyPlugin, line: PluginLine): unknown => {
  const schema = plugin.options ?? noOptions
  const fault = schemaFault(schema)
  if (fault !== undefined) throw refusal(line, `has a broken options schema: ${fault}`)
  const { value, problems } = validateOptions(schema, line.options ?? {})
  if (problems.length === 0) return value
  throw new ConfigError(problems.map(problem => line.problem(problem.loc, problem.msg)))
}

const isPlugin = (value: unknown): value is AnyPlugin =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as { name?: unknown }).name === "string" &&
  typeof (value as { setup?: unknown }).setup === "function"

const refusal = (line: PluginLine, message: string): ConfigError =>
  new ConfigError([line.problem([], `plugin ${line.name} ${message}`)])

export const isPath = (name: string): boolean => name.startsWith(".") || isAbsolute(name)

const locate = async (line: PluginLine): Promise<{ file: string; foreign: boolean }> => {
  if (isPath(line.name)) return { file: resolve(dirname(line.at.file), line.name), foreign: true }
  const own = (await builtIn(builtInFolder)).get(line.name)
  if (own !== undefined) return { file: own, foreign: false }
  const file = packageFile(line.name, line.at.file)
  if (file !== undefined) return { file, foreign: true }
  throw refusal(line, "is neither built in nor an installed package; a file needs a path that starts with ./")
}

// ---- files ----

/** The files of a folder, and the `index` of each folder in it, by the names that a configuration calls them by. */
export const builtIn = async (folder: string): Promise<ReadonlyMap<string, string>> => {
  const entries = await readdir(folder, { withFileTypes: true })
  return new Map(
    entries
      .map(entry => (entry.isDirectory() ? indexOf(folder, entry.name) : fileOf(folder, entry.name)))
      .filter(([name, file]) => nameForm.test(name) && existsSync(file))
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  )
}

const indexOf = (folder: string, name: string): readonly [name: string, file: string] => [
  name,
  join(folder, name, `index${extension}`),
]

/** Pages and declarations are none: what is left of their names has a dot. */
const fileOf = (folder: string, file: string): readonly [name: string, file: string] => [
  basename(file, extension),
  join(folder, file),
]

/** What V8 says of a module that Node took for CommonJS; `npm init` makes folders where it does. */
const tookForCommonJs = /^(Unexpected token 'export'|Cannot use (import statement|'import\.meta') outside a module)/
const whatToDo = `a module is named .mjs or .mts, or its package.json says "type": "module"`

/** What of a module counts: a plugin or an adapter, and the dialects beside an adapter's own. */
export interface Module {
  readonly default?: unknown
  readonly dialects?: unknown
}

/** @throws what the module throws; an Error that says what to do when Node took it for CommonJS */
export const importFile = (file: string): Promise<Module> =>
  import(pathToFileURL(file).href).catch(error => {
    if (!(error instanceof SyntaxError && tookForCommonJs.test(error.message))) throw error
    throw new Error(`${error.message}: ${whatToDo}`, { cause: error })
  })

const importDefault = async (file: string): Promise<unknown> => (await importFile(file)).default
