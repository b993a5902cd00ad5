/** Sets plugins up, one after the other, and takes them down in reverse. Neither may take longer than a step may. */

import { ConfigError } from "./catalog/load.ts"
import type { ReadyPlugin } from "./loader.ts"
import type { Clock, Host, Log, Teardown } from "./plugin.ts"

export interface SetupParts {
  readonly clock: Clock
  readonly log: Log
  /** How long a setup or a teardown may take. */
  readonly stepMs: number
}

export class Setups {
  readonly #parts: SetupParts
  readonly #made: { readonly plugin: ReadyPlugin; readonly teardown: Teardown }[] = []

  constructor(parts: SetupParts) {
    this.#parts = parts
  }

  /** @throws ConfigError at the plugin's line when its setup throws or does not end */
  async add(plugin: ReadyPlugin, host: Host): Promise<void> {
    const setting = plugin.setup(host)
    try {
      const teardown = await this.#bounded(setting, "setup")
      if (teardown !== undefined) this.#made.push({ plugin, teardown })
    } catch (error) {
      if (error instanceof Late) void this.#undo(plugin, setting)
      throw new ConfigError([plugin.problem(`plugin ${plugin.name}: ${messageOf(error)}`)], { cause: error })
    }
  }

  async tearDown(): Promise<void> {
    for (const { plugin, teardown } of this.#made.splice(0).reverse()) await this.#end(plugin, teardown)
  }

  async #end({ name }: ReadyPlugin, teardown: Teardown): Promise<void> {
    try {
      await this.#bounded(Promise.resolve(teardown()), "teardown")
    } catch (cause) {
      this.#parts.log.error({ err: cause, plugin: name }, "a plugin could not be torn down")
    }
  }

  /** A setup that ends after all belongs to no generation: what it made is taken down at once. */
  async #undo(plugin: ReadyPlugin, setting: Promise<Teardown | undefined>): Promise<void> {
    const teardown = await setting.catch(() => undefined) // its lateness was told already
    if (teardown !== undefined) await this.#end(plugin, teardown)
  }

  async #bounded<T>(work: Promise<T>, what: string): Promise<T> {
    const { clock, stepMs } = this.#parts
    let cancel = (): void => {}
    const late = new Promise<never>((_, reject) => {
      cancel = clock.after(stepMs, () => reject(new Late(`${what} did not end within ${stepMs / 1_000}s`)))
    })
    try {
      return await Promise.race([work, late])
    } finally {
      cancel()
    }
  }
}

class Late extends Error {}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
