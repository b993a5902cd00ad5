/** The onion of a route, compiled at load: what does not apply to the route is not in its chain. */

import type { Target } from "../offer.ts"
import type { Call, Draft, Facts, Outcome, Route, Step } from "../plugin.ts"
import type { ScannedBody } from "./body.ts"
import type { GatewayCall } from "./call.ts"
import { guarded, guardedHandler } from "./foreign-step.ts"

/** A step and the plugin that it came from. */
export interface NamedStep {
  readonly plugin: string
  readonly step: Step
  /** Not ours: what it must return is checked, and what it does after `next()` is its own. */
  readonly foreign: boolean
}

/** A route with all that is known at load. */
export interface CompiledRoute {
  readonly route: Route
  readonly method: string
  readonly path: string
  /** The plugins in the chain, outermost first. */
  readonly chain: readonly string[]
  /** What the steps of the chain say of their bounds. */
  readonly bounds: readonly { readonly plugin: string; readonly text: string }[]
  run(call: GatewayCall): Promise<Outcome>
  /** Scans and validates the received bytes. */
  readBody(bytes: Buffer): ScannedBody
  exchange(call: GatewayCall, prepare: (target: Target) => Draft | Promise<Draft>): Promise<Outcome>
  tunnel(call: GatewayCall, target: Target, path: string): Promise<Outcome>
}

export interface RouteParts {
  /** The plugin that brought the route. */
  readonly owner: string
  /** Not ours: its handler is checked as its steps are. */
  readonly foreign: boolean
  readonly readBody: (bytes: Buffer) => ScannedBody
  /** Throws the 422 of the specification. */
  readonly checkQuery: ((query: URLSearchParams) => void) | undefined
  readonly exchange: CompiledRoute["exchange"]
  readonly tunnel: CompiledRoute["tunnel"]
  readonly steady: () => number
  /** One call in a hundred: a plugin's own time, without `next()`. */
  readonly observe: (plugin: string, seconds: number) => void
}

const sampleEvery = 100

/**
 * @throws ChainError naming route and plugin when a fact is needed that nobody before provides, or provided twice, when
 * a `key` route has no principal, or a charging route no quote
 */
export const compileRoute = (route: Route, steps: readonly NamedStep[], parts: RouteParts): CompiledRoute => {
  const chain = steps.filter(({ step }) => step.on === undefined || step.on(route))
  prove(route, chain)
  const onion = chain.reduceRight<Run>((next, named) => layer(named, next, parts), core(route, parts))
  return {
    route,
    method: route.method,
    path: route.path,
    chain: chain.map(({ plugin }) => plugin),
    bounds: chain.flatMap(({ plugin, step }) =>
      step.bounds === undefined ? [] : [{ plugin, text: step.bounds(route) }],
    ),
    run: async call => onion(call),
    readBody: parts.readBody,
    exchange: parts.exchange,
    tunnel: parts.tunnel,
  }
}

type Run = (call: GatewayCall) => Promise<Outcome>

/**
 * A step's own time starts when it is entered and again when `next()` is back; `limits.step` bounds it. `call.step`
 * names who is at work, so that a throw or a hang has its author. Runs nine times a call: no promise of its own but for
 * steps that are not ours.
 */
const layer = (named: NamedStep, next: Run, parts: RouteParts): Run => {
  const { plugin } = named
  const step = named.foreign ? guarded(plugin, named.step, parts.steady) : named.step
  let calls = 0
  return call => {
    let used = false
    const onward = (): Promise<Outcome> => {
      if (used) {
        call.enter(plugin, parts.steady())
        throw new Error(`plugin ${plugin} called next() twice`)
      }
      used = true
      return next(call)
    }
    call.enter(plugin, parts.steady())
    if (++calls % sampleEvery === 0) return sampled(call, plugin, step, onward, parts)
    return step.run(call as Call, onward)
  }
}

const sampled = async (
  call: GatewayCall,
  plugin: string,
  step: Step,
  onward: () => Promise<Outcome>,
  parts: RouteParts,
): Promise<Outcome> => {
  const entered = performance.now()
  let inner = 0
  try {
    return await step.run(call as Call, async () => {
      const left = performance.now()
      try {
        return await onward()
      } finally {
        inner = performance.now() - left
      }
    })
  } finally {
    parts.observe(plugin, (performance.now() - entered - inner) / 1000)
  }
}

/** The innermost: the checks that must come after the guards, then the route's own handler. */
const core = (route: Route, parts: RouteParts): Run => {
  const handle = parts.foreign ? guardedHandler(parts.owner, route) : (call: Call) => route.handle(call)
  return async call => {
    parts.checkQuery?.(call.query)
    if (route.schema !== undefined) await call.body()
    call.enter(parts.owner, parts.steady())
    try {
      return await handle(call as Call)
    } finally {
      call.enter(call.step, parts.steady()) // the onion unwinds: who hangs on the way out is bounded like on the way in
    }
  }
}

/** A fact that nothing provides, or two do; `step` is the one at fault, if it is not the route itself. */
export class ChainError extends Error {
  readonly step: NamedStep | undefined

  constructor(message: string, step?: NamedStep) {
    super(message)
    this.step = step
  }
}

const prove = (route: Route, chain: readonly NamedStep[]): void => {
  const known = new Map<keyof Facts, string>()
  const at = `${route.method} ${route.path}`
  for (const named of chain) {
    const { plugin, step } = named
    for (const fact of step.needs ?? []) {
      if (!known.has(fact))
        throw new ChainError(`${at}: plugin ${plugin} needs "${fact}", which no plugin above it provides`, named)
    }
    for (const fact of step.provides ?? []) {
      const other = known.get(fact)
      if (other !== undefined)
        throw new ChainError(`${at}: plugin ${plugin} provides "${fact}", and so does plugin ${other} above it`, named)
      known.set(fact, plugin)
    }
  }
  if (route.access === "key" && !known.has("principal"))
    throw new ChainError(`${at} takes a key, but no plugin in its chain provides "principal"`)
  if (route.charge !== "none" && !known.has("quote"))
    throw new ChainError(`${at} charges, but no plugin in its chain provides "quote"`)
  if (route.model !== "none" && !known.has("plan"))
    throw new ChainError(`${at} needs a model, but no plugin in its chain provides "plan"`)
}
