/** The composition root: one process, one generation at a time; starts, reloads, drains. */

import { type Stats, unwatchFile, watchFile } from "node:fs"
import { type Bootstrap, bootstrap } from "./bootstrap.ts"
import { type Config, ConfigError, type LoadOptions, loadConfig, needsRestart } from "./catalog/load.ts"
import { buildGeneration, type Generation } from "./generation.ts"
import { createByteBudget } from "./http/body.ts"
import { createOpsServer, type OpsServer } from "./http/ops.ts"
import { createPublicServer, type PublicServer } from "./http/server.ts"
import { watchStrays } from "./observe/strays.ts"
import { modelsOf, openProcess, type Process, type ProcessOptions } from "./process.ts"
import { storeUnavailable } from "./state/failure.ts"
import { version } from "./version.ts"

export interface GatewayOptions extends ProcessOptions, LoadOptions {
  /** The path of gateway.yaml; read again at each reload. */
  readonly file: string
}

/** Unless a step says less; more than every limit of the product would only cost memory. */
const bodyMaxBytes = 25 * 1024 * 1024
/** When the calls took all the time there was, plugins still have this much to write down what they keep. */
const lastWordMs = 1_000
/** A store that is away has at least this long to come back for the last charges, whatever time the calls took. */
const lastChargesMs = 5_000

/** Why a reload is refused. */
const stopping = "the gateway is stopping"

/** @throws ConfigError, or what keeps the store or a port from opening */
export const startGateway = async (options: GatewayOptions): Promise<Gateway> => {
  const reread = (): Promise<Config> => loadConfig(options.file, options)
  return openGateway(await reread(), options, reread)
}

/** The same for a configuration in memory. */
export const openGateway = async (
  config: Config,
  options: ProcessOptions,
  reread: () => Promise<Config> = async () => config,
): Promise<Gateway> => {
  const process = await openProcess(config, options)
  let generation: Generation
  try {
    generation = await buildGeneration(config, process.parts)
  } catch (error) {
    await process.close()
    throw error
  }
  const gateway = new Gateway(process, generation, reread)
  try {
    await gateway.listen()
  } catch (error) {
    await gateway.stop() // one listener may be open already: without this the process never ends
    throw error
  }
  return gateway
}

export class Gateway {
  readonly parts: Process["parts"]
  readonly #process: Process
  readonly #reread: () => Promise<Config>
  readonly #server: PublicServer
  readonly #ops: OpsServer
  #generation: Generation
  #url = ""
  #opsUrl = ""
  #draining = false
  #stopping: Promise<void> | undefined
  #reloading: Promise<readonly string[]> = Promise.resolve([])
  /** Old generations whose last call, or whose teardown, is not over. */
  readonly #retiring = new Set<Promise<void>>()
  #nextReload: Promise<readonly string[]> | undefined
  #bootstrap: Bootstrap = { waits: true, end() {} }
  #begun = false
  readonly #watchOnly = createWatch(() => void this.reload())

  constructor(process: Process, generation: Generation, reread: () => Promise<Config>) {
    this.#process = process
    this.parts = process.parts
    this.#generation = generation
    process.follow(generation)
    this.#reread = reread
    this.#server = this.#makeServer()
    this.#ops = createOpsServer({
      metrics: this.parts.metrics,
      token: this.config.ops.token,
      unready: () => this.#unready(),
    })
  }

  /** Scheme, host and port of the public listener; the API lies below `config.basePath`. */
  get url(): string {
    return this.#url
  }

  get opsUrl(): string {
    return this.#opsUrl
  }

  get config(): Config {
    return this.#generation.config
  }

  get routes(): Generation["routes"] {
    return this.#generation.routes
  }

  async listen(): Promise<void> {
    const { listen, ops, bootstrap: organisations } = this.config
    const { store, clock, log } = this.parts
    this.#bootstrap = await bootstrap(organisations, store, clock, log)
    this.#opsUrl = urlOf(await this.#ops.listen(ops.host, ops.port))
    this.#url = urlOf(await this.#server.listen(listen.host, listen.port))
    this.#watch()
    this.#applied()
  }

  /**
   * The reasons why the old configuration stays; none when the new one serves. Reloads wait for each other, and one that
   * waits is the answer to all who ask meanwhile: it has yet to read the files.
   */
  reload(): Promise<readonly string[]> {
    this.#nextReload ??= this.#reloading.then(() => {
      this.#nextReload = undefined
      return this.#reload()
    })
    this.#reloading = this.#nextReload
    return this.#reloading
  }

  /**
   * Refuses new calls, lets the running ones end within `shutdown`, settles everything.
   *
   * @throws Error when all is closed, and the store has not confirmed every charge and release
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  /** For a process that ends at once: the log tells each charge and release that the store has not confirmed. */
  tell(): void {
    this.#process.tell()
  }

  async #reload(): Promise<readonly string[]> {
    const { metrics, log, store, clock } = this.parts
    const told = metrics.product("config_reloads_total")
    try {
      if (this.#draining) throw new Error(stopping)
      const next = await this.#readAgain()
      const restart = needsRestart(this.config, next)
      if (restart.length > 0) throw new ConfigError(restart.map(key => `${next.file}: ${key} needs a restart`))
      const generation = await buildGeneration(next, this.parts)
      if (this.#draining) {
        await generation.retire()
        throw new Error(stopping)
      }
      this.#swap(generation)
      this.#bootstrap.end()
      this.#bootstrap = await bootstrap(next.bootstrap, store, clock, log)
      if (this.#draining) this.#bootstrap.end()
      told.child("applied").add()
      log.info({ catalog: next.catalog.digest }, "configuration reloaded")
      return []
    } catch (error) {
      told.child("refused").add()
      const reasons = (error as Error).message.split("\n")
      log.error({ reasons }, "configuration refused; the old one serves on")
      return reasons
    }
  }

  /** What was read is watched from now on: a mistake is mended where it was made, in a file that may be new. */
  async #readAgain(): Promise<Config> {
    try {
      const next = await this.#reread()
      this.#watch(next.files)
      return next
    } catch (error) {
      this.#watch(error instanceof ConfigError ? error.files : [])
      throw error
    }
  }

  #swap(next: Generation): void {
    const { metrics, log } = this.parts
    const old = this.#generation
    metrics.product("build_info").child(version, old.config.catalog.digest).set(0)
    this.#generation = next
    this.#process.follow(next)
    this.#server.limit(next.config.limits.connections)
    this.#watch()
    this.#applied()
    const retired = old
      .retire()
      .catch(cause => log.error({ err: cause }, "an old generation could not be retired"))
      .finally(() => this.#retiring.delete(retired))
    this.#retiring.add(retired)
  }

  /** @param wanted the files of a configuration that does not serve yet */
  #watch(wanted: readonly string[] = []): void {
    const { watch, files } = this.config
    this.#watchOnly(watch && !this.#draining ? [...files, ...wanted] : [])
  }

  #applied(): void {
    const { metrics, clock } = this.parts
    metrics
      .product("config_last_success_timestamp_seconds")
      .child()
      .set(clock.now() / 1000)
    metrics.product("build_info").child(version, this.config.catalog.digest).set(1)
    makeAlarms(this.#generation, metrics)
  }

  async #stop(): Promise<void> {
    const { drains } = this.#process
    const { shutdownMs } = this.config
    const began = performance.now()
    const left = (): number => shutdownMs - (performance.now() - began)
    this.#draining = true
    this.#watch()
    this.#bootstrap.end()
    await this.#server.drain(shutdownMs)
    await within(drains.idle(), Math.max(0, left()))
    drains.cancelAll()
    await drains.idle()
    const last = [this.#reloading, this.#generation.retire(), ...this.#retiring]
    const ended = await within(Promise.all(last), Math.max(lastWordMs, left()))
    if (!ended) this.parts.log.warn({}, "stopped before a reload or the plugins had ended")
    const unconfirmed = await this.#process.close(Math.max(lastChargesMs, Math.ceil(left())))
    await this.#ops.close()
    if (unconfirmed > 0) throw new Error(`the store had not confirmed ${unconfirmed} charges or releases, told above`)
  }

  #unready(): string | undefined {
    if (this.#draining) return "draining"
    if (!this.parts.store.ready()) return "the store does not answer"
    return this.#hasBegun() ? undefined : "the store has not taken the bootstrap yet"
  }

  /** Before the store took what the configuration names, keys that it names would be told to be invalid. */
  #hasBegun(): boolean {
    this.#begun ||= !this.#bootstrap.waits
    return this.#begun
  }

  #makeServer(): PublicServer {
    const { metrics, clock, log } = this.parts
    const { limits, sandbox } = this.config
    const missing = metrics.product("usage_missing_total")
    return createPublicServer({
      context: {
        now: clock.now,
        steady: clock.steady,
        budget: createByteBudget(() => this.config.limits.bodiesInMemoryBytes),
        bodyGauge: metrics.product("body_bytes_in_flight").child(),
        sandbox,
        basePath: this.config.basePath,
        bodyMaxBytes,
        onUsageMissing: (call, target) => missing.child(target.vendor, call.find("model")?.model.name ?? "other").add(),
      },
      site: () => this.#generation,
      deadlines: this.#process.deadlines,
      log,
      connections: limits.connections,
      unready: () => (this.#hasBegun() ? undefined : storeUnavailable(new Error("the bootstrap waits for the store"))),
      stepMs: () => this.config.limits.stepMs,
      onPluginError: plugin => metrics.product("plugin_errors_total").child(plugin).add(),
      onStray: watchStrays({ metrics, log, listeners: () => this.#generation.onStray }),
    })
  }
}

/** The first event of an alarm must be a rise, so its series stand at zero from the start. */
const makeAlarms = (generation: Generation, metrics: Process["parts"]["metrics"]): void => {
  for (const { name, targets } of modelsOf(generation)) {
    for (const { vendor } of targets) {
      metrics.product("usage_missing_total").child(vendor, name)
      metrics.product("usage_unpriced_total").child(vendor, name)
    }
  }
  for (const plugin of generation.plugins) metrics.product("plugin_errors_total").child(plugin)
  for (const outcome of ["applied", "refused"]) metrics.product("config_reloads_total").child(outcome)
}

/** Whether it ended in time. */
const within = async (promise: Promise<unknown>, ms: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(resolve, ms, false)
  })
  const ended = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return ended
}

const urlOf = ({ address, family, port }: { address: string; family: string; port: number }): string =>
  `http://${family === "IPv6" ? `[${address}]` : address}:${port}`

const polling = { interval: 1_000, persistent: false }

/** Polled, so that files behind swapped symbolic links (Kubernetes' ConfigMaps) are seen as well. */
const createWatch = (changed: () => void): ((files: Iterable<string>) => void) => {
  let watched: ReadonlySet<string> = new Set()
  const look = (now: Stats, before: Stats): void => {
    if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino) changed()
  }
  return files => {
    const wanted = new Set(files)
    // Those that stay are left alone: begun anew, a watch would take what changed since its last look as it stands.
    for (const file of watched) if (!wanted.has(file)) unwatchFile(file, look)
    for (const file of wanted) if (!watched.has(file)) watchFile(file, polling, look)
    watched = wanted
  }
}
