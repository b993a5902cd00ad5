/** Reads gateway.yaml and the catalog that it names, checks both whole, and fills in the defaults. */

import { readFile, stat } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import type { LeftOut } from "../offer.ts"
import { readCatalog } from "./catalog.ts"
import type { Config, LoadOptions, Place } from "./config.ts"
import { readBasePath, readLimits, readListen, readOps, readStore, readTimezone, readUpstream } from "./deployment.ts"
import { type Field, required } from "./field.ts"
import { ConfigError, Problems, problemText } from "./problems.ts"
import { readBootstrap, readEndpoints, readMounts, readPlugins } from "./product.ts"
import type { SecretSource } from "./secret.ts"
import { readVendors } from "./vendors.ts"
import { readYaml } from "./yaml.ts"

export type * from "./config.ts"
export { ConfigError, problemText } from "./problems.ts"

const topKeys = [
  "listen",
  "ops",
  "base_path",
  "timezone",
  "store",
  "limits",
  "upstream",
  "shutdown",
  "watch",
  "sandbox",
  "catalog",
  "vendors",
  "plugins",
  "endpoints",
  "mounts",
  "bootstrap",
]

/**
 * The configuration of a deployment.
 *
 * @param file the path of gateway.yaml; relative paths inside it are relative to it
 * @throws ConfigError with every problem that was found, each with file, line and column, and the files that were read or wanted
 */
export const loadConfig = async (file: string, options: LoadOptions = {}): Promise<Config> => {
  const files = new Set<string>()
  try {
    return await readFiles(file, { ...options, env: options.env ?? process.env }, files)
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(error.problems, { files: [...files] }) : error
  }
}

/** @param files takes the path of each file before it is read */
const readFiles = async (file: string, options: LoadOptions, files: Set<string>): Promise<Config> => {
  const problems = new Problems()
  const path = resolve(file)
  files.add(path)
  const top = readYaml(await textOf(path, file), path, problems)
  const fields = top.fields(topKeys)
  if (fields.size === 0) problems.check() // not the file that was meant: nothing else in it, or beside it, is news
  const catalogField = fields.get("catalog")
  const catalogPath = resolve(dirname(path), catalogField?.string("the path of a file") ?? "./catalog.yaml")
  files.add(catalogPath)
  const catalog = readYaml(await textOf(catalogPath, catalogPath, catalogField ?? top), catalogPath, problems)
  const config = readConfig(path, top, catalog, options, files)
  problems.check()
  return config
}

/** Without `named` it is the file that the command line asks for: a package has it elsewhere than a clone. */
const textOf = async (path: string, shown: string, named?: Field): Promise<string> => {
  try {
    if ((await stat(path)).isFile()) return await readFile(path, "utf8")
  } catch {
    // Told below, in the same words whatever the reason.
  }
  const at = named?.at ?? { file: shown, line: 1, column: 1 }
  const advice = named === undefined ? "; `cp -r node_modules/tollgate/config .` brings one to begin with" : ""
  throw new ConfigError([problemText(at, named?.path ?? "", `expected a file that can be read at ${path}${advice}`)])
}

const readConfig = (file: string, top: Field, catalog: Field, options: LoadOptions, files: Set<string>): Config => {
  const fields = top.fields(topKeys)
  const sandbox = fields.get("sandbox")?.boolean() ?? false
  const needed: SecretSource = { env: options.env ?? {}, sandbox, mayBeAbsent: sandbox, files }
  const source: SecretSource = options.storeOnly === true ? { ...needed, mayBeAbsent: true } : needed
  const known = readVendors(required(top, fields, "vendors"), source)
  if (known.vendors.size === 0 && known.left.size > 0)
    fields
      .get("vendors")
      ?.problem(`expected the secret of at least one vendor: set one of ${variablesOf(known.left).join(", ")}`)
  return {
    file,
    listen: readListen(fields.get("listen"), options, top),
    ops: readOps(fields.get("ops"), options, source),
    basePath: readBasePath(fields.get("base_path")),
    timezone: readTimezone(fields.get("timezone")),
    store: readStore(fields.get("store"), file, needed),
    limits: readLimits(fields.get("limits")),
    upstream: readUpstream(fields.get("upstream")),
    shutdownMs: fields.get("shutdown")?.duration() ?? 30_000,
    watch: fields.get("watch")?.boolean() ?? false,
    sandbox,
    vendors: known.vendors,
    places: {
      vendors: placesIn(top, "vendors"),
      models: placesIn(catalog, "models"),
      mounts: placesIn(top, "mounts"),
    },
    plugins: readPlugins(fields.get("plugins")),
    endpoints: readEndpoints(fields.get("endpoints")),
    mounts: readMounts(fields.get("mounts")),
    bootstrap: readBootstrap(fields.get("bootstrap"), sandbox, currentNames(catalog)),
    catalog: readCatalog(catalog, known),
    files: [...files],
  }
}

const variablesOf = (left: LeftOut["vendors"]): readonly string[] => [...new Set([...left.values()].flat())]

const entriesIn = ({ shape }: Field, key: string): ReadonlyMap<string, Field> => {
  const written = shape.kind === "map" ? shape.entries.get(key)?.shape : undefined
  return written?.kind === "map" ? written.entries : new Map()
}

const placesIn = (field: Field, key: string): ReadonlyMap<string, Place> =>
  new Map([...entriesIn(field, key)].map(([name, one]) => [name, placeOf(one)]))

/** The name that a model bears now, whether it is offered here or left out; organisations keep no aliases. */
const currentNames = (catalog: Field): ((name: string) => string | undefined) => {
  const [models, aliases] = [entriesIn(catalog, "models"), entriesIn(catalog, "aliases")]
  return name => (models.has(name) ? name : aliases.get(name)?.string())
}

const placeOf = (field: Field): Place => ({
  at: field.at,
  problem: (path, message) => field.problemAt(path, message),
})

/** The keys of gateway.yaml that differ and that a running process cannot change. */
export const needsRestart = (before: Config, after: Config): string[] =>
  Object.entries(restartOnly).flatMap(([key, part]) => (part(before) === part(after) ? [] : [key]))

const restartOnly: Readonly<Record<string, (config: Config) => string>> = {
  listen: config => JSON.stringify(config.listen),
  ops: config => JSON.stringify([config.ops, config.ops.token?.reveal()]),
  base_path: config => config.basePath,
  store: config => JSON.stringify([config.store, config.store.kind === "redis" ? config.store.url.reveal() : ""]),
  sandbox: config => String(config.sandbox),
}
