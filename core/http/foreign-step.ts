/** Steps that are not ours: their mistakes and their hanging end one call, and are told under their own name. */

import type { Call, Outcome, Route, Step } from "../plugin.ts"
import type { GatewayCall } from "./call.ts"

/** Types make our own steps return what `next()` gave, and none of them throws after it; a plugin may do either. */
export const guarded = (plugin: string, step: Step, steady: () => number): Step => ({
  ...step,
  run: (call, next) => new ForeignStep(plugin, step, call as GatewayCall, steady).run(next),
})

/** The same for a handler: the steps around it hear of its hanging, and count it. */
export const guardedHandler =
  (plugin: string, route: Route): Route["handle"] =>
  call => {
    const result = Promise.withResolvers<Outcome>()
    ;(call as GatewayCall).giveUp = result.reject
    handled(plugin, route, call).then(result.resolve, result.reject)
    return result.promise
  }

const handled = async (plugin: string, route: Route, call: Call): Promise<Outcome> => {
  const outcome = await route.handle(call)
  if (outcome === undefined) throw new Error(`plugin ${plugin} must return how a call of ${route.path} ended`)
  return outcome
}

class ForeignStep {
  readonly #plugin: string
  readonly #step: Step
  readonly #call: GatewayCall
  readonly #steady: () => number
  readonly #result = Promise.withResolvers<Outcome>()
  /** What came from within, and whose it was. */
  #inner: { readonly error: unknown; readonly step: string } | undefined

  constructor(plugin: string, step: Step, call: GatewayCall, steady: () => number) {
    this.#plugin = plugin
    this.#step = step
    this.#call = call
    this.#steady = steady
  }

  run(next: () => Promise<Outcome>): Promise<Outcome> {
    this.#enter(this.#plugin)
    this.#through(next).then(this.#result.resolve, this.#result.reject)
    return this.#result.promise
  }

  async #through(next: () => Promise<Outcome>): Promise<Outcome> {
    try {
      const outcome = await this.#step.run(this.#call as Call, () => this.#onward(next))
      if (outcome === undefined) throw new Error(`plugin ${this.#plugin} must return what next() gave`)
      return outcome
    } catch (error) {
      const inner = this.#inner
      if (inner !== undefined && inner.error === error) this.#enter(inner.step) // it only passed through
      throw error
    }
  }

  async #onward(next: () => Promise<Outcome>): Promise<Outcome> {
    try {
      return await next()
    } catch (error) {
      this.#inner = { error, step: this.#call.step }
      throw error
    } finally {
      this.#enter(this.#plugin)
    }
  }

  #enter(step: string): void {
    this.#call.enter(step, this.#steady())
    this.#call.giveUp = this.#result.reject
  }
}
