/** What belongs to a process and outlives every generation: store, ledger, metrics, sockets, the sandbox. */

import type { Config } from "./catalog/load.ts"
import type { Generation, ProcessParts } from "./generation.ts"
import { createBreaker } from "./http/breaker.ts"
import { Deadlines } from "./http/deadlines.ts"
import { createDrains, type Drains } from "./http/drains.ts"
import { keepTick } from "./http/ticks.ts"
import { createUpstream } from "./http/upstream.ts"
import { type AnyPlugin, loadSandbox } from "./loader.ts"
import { createLedger } from "./money/ledger.ts"
import { systemClock } from "./observe/clock.ts"
import { type ChildLog, createLog } from "./observe/log.ts"
import { createMetrics, type MetricsHub } from "./observe/metrics.ts"
import type { Model } from "./offer.ts"
import type { Clock } from "./plugin.ts"
import { dayIn } from "./state/day.ts"
import { holdLifeMs, openStore } from "./state/open.ts"

export interface ProcessOptions {
  readonly clock?: Clock
  readonly log?: ChildLog
  /** In [0, 1). */
  readonly random?: () => number
  /** Pauses of the sandbox between the chunks of a stream. */
  readonly sandboxPauseMs?: number
  /** Plugins that no file names, at the end of the pipeline: those under test. */
  readonly plugins?: readonly AnyPlugin[]
}

export interface Process {
  readonly parts: ProcessParts
  readonly deadlines: Deadlines
  readonly drains: Drains
  /** Takes the limits and the time zone of what serves from now on; sockets and health of what left go. */
  follow(generation: Generation): void
  /** The log tells each charge and release that the store has not confirmed. */
  tell(): void
  /**
   * Waits so long for what is pending to be settled, then closes everything.
   *
   * @returns how many charges and releases the store had not confirmed; the log tells each
   */
  close(withinMs?: number): Promise<number>
}

/** How late a deadline may be noticed. */
const deadlineStepMs = 100

export const openProcess = async (config: Config, options: ProcessOptions): Promise<Process> => {
  void keepTick()
  const clock = options.clock ?? systemClock
  const log = options.log ?? createLog({ level: "info" })
  const random = options.random ?? Math.random
  const metrics = createMetrics({ defaults: true })
  const deadlines = new Deadlines(clock, deadlineStepMs)
  let current = config
  const day = dayIn(() => current.timezone)
  const store = await openStore(config.store, {
    now: clock.now,
    steady: clock.steady,
    day,
    ...watchStore(log, metrics),
  })
  const ledger = createLedger({ store, clock, log, metrics: metrics.forPlugin("ledger"), holdLifeMs })
  const upstream = createUpstream({ connections: () => current.upstream.connections, clock, deadlines })
  const drains = createDrains(() => current.upstream.drain, clock)
  const sandbox = config.sandbox ? await openSandbox(options.sandboxPauseMs) : undefined
  const breaker = createBreaker(clock, metrics.product("upstream_breaker_state"))
  const exchange = { upstream, breaker, drains, clock, deadlines, random, metrics: metrics.forPlugin("core"), log }
  return {
    parts: {
      store,
      ledger,
      metrics,
      log,
      clock,
      random,
      day,
      exchange,
      shared: new Map(),
      sandboxOrigin: sandbox?.origin,
      plugins: options.plugins ?? [],
    },
    deadlines,
    drains,
    follow: generation => {
      current = generation.config
      const vendors = [...generation.vendors.values()]
      const targets = modelsOf(generation).flatMap(model => model.targets)
      upstream.keep(vendors)
      breaker.keep(vendors, targets)
    },
    tell: () => ledger.tell(),
    close: async (withinMs = 0) => {
      const unconfirmed = await ledger.stop(withinMs)
      await Promise.all([upstream.close(), sandbox?.close(), store.close()])
      deadlines.stop()
      return unconfirmed
    },
  }
}

/** What calls can ask for: the models of the catalog, and what routes sell themselves. */
export const modelsOf = ({ config, routes }: Generation): readonly Model[] => [
  ...config.catalog.models.values(),
  ...routes.flatMap(({ route }) => route.fixed ?? []),
]

const watchStore = (
  log: ChildLog,
  metrics: MetricsHub,
): Pick<Parameters<typeof openStore>[1], "onState" | "observe"> => {
  const durations = metrics.product("dependency_duration_seconds")
  const errors = metrics.product("dependency_errors_total")
  return {
    onState: (up, cause) =>
      up ? log.info({}, "the store answers") : log.error({ err: cause }, "the store does not answer"),
    observe: (operation, seconds, failed) => {
      durations.child("store", operation).observe(seconds)
      if (failed) errors.child("store", operation).add()
    },
  }
}

const openSandbox = async (pauseMs: number | undefined): Promise<{ origin: string; close(): Promise<void> }> => {
  const { startSandbox } = (await loadSandbox()) as {
    startSandbox(options: { pauseMs?: number }): Promise<{ origin: string; close(): Promise<void> }>
  }
  return startSandbox(pauseMs === undefined ? {} : { pauseMs })
}
