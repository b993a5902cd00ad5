/** One call on its way through its chain: bounded in time, ended once, its failure answered. */

import type { ServerResponse } from "node:http"
import type { Dialect } from "../adapter.ts"
import { asGatewayError, GatewayError } from "../errors.ts"
import type { Log } from "../plugin.ts"
import type { GatewayCall } from "./call.ts"
import type { Deadlines, Watched } from "./deadlines.ts"
import type { CompiledRoute } from "./pipeline.ts"
import { refuse } from "./refuse.ts"
import type { OtherMethods } from "./router.ts"

/** What a request meets: the routes and dialects of one generation. */
export interface Site {
  match(
    method: string,
    path: string,
  ):
    | { readonly route: CompiledRoute; readonly params: Record<string, string> }
    | OtherMethods<CompiledRoute>
    | undefined
  /** The same among the routes that take WebSockets. */
  matchUpgrade(path: string): ReturnType<Site["match"]>
  dialect(name: string): Dialect
  /** Counts a call in; the function returned counts it out, so that an old generation is torn down after its last call. */
  enter(): () => void
}

export interface ServingParts {
  readonly deadlines: Deadlines
  readonly log: Log
  /** Own time of a pipeline step. */
  readonly stepMs: () => number
  /** A step (or a route's handler) threw what is no error of ours, or hung. */
  readonly onPluginError: (plugin: string) => void
  readonly onOver: (call: GatewayCall) => void
}

/**
 * A class and no closures: an object literal with a getter has a hidden class of its own, which the garbage collector
 * keeps, and the whole call with it, until a full collection.
 */
export class Serving implements Watched {
  place: number | undefined
  readonly #call: GatewayCall
  readonly #site: Site
  readonly #response: ServerResponse
  readonly #parts: ServingParts
  readonly #leave: () => void
  #over = false
  #expired = false

  constructor(call: GatewayCall, site: Site, response: ServerResponse, parts: ServingParts) {
    this.#call = call
    this.#site = site
    this.#response = response
    this.#parts = parts
    this.#leave = site.enter()
  }

  start(): void {
    const call = this.#call
    this.#parts.deadlines.watch(this)
    call.client.onGone(() => call.leave())
    call.compiled.run(call).then(
      () => this.#done(),
      error => this.#failed(error),
    )
  }

  /** When the step that is at work has used up its own time, or the client the time for its last bytes. */
  get deadline(): number {
    return Math.min(this.#call.stepSince + this.#parts.stepMs(), this.#call.client.takenBy)
  }

  expire(now: number): void {
    if (now >= this.#call.client.takenBy) this.#dropClient()
    else this.#stopStep()
  }

  /** The call ends as one whose client left. */
  #dropClient(): void {
    const { client } = this.#call
    client.takenBy = Number.POSITIVE_INFINITY
    this.#parts.deadlines.watch(this) // for the steps that hear of it
    client.cut()
  }

  #stopStep(): void {
    const { step, route, giveUp } = this.#call
    const cause = `plugin ${step} hangs on ${route.path}`
    const error = new GatewayError("plugin_failed", "Internal error", { cause, plugin: step })
    if (this.#expired || giveUp === undefined) return this.#finish(error)
    this.#expired = true
    this.#parts.deadlines.watch(this) // for those around it
    giveUp(error)
  }

  #done(): void {
    if (this.#call.later === undefined) this.#release() // a step may have answered by itself after a hold was made
    this.#finish()
  }

  #failed(error: unknown): void {
    if (this.#over) this.#release()
    else this.#finish(error ?? new Error("rejected with nothing"))
  }

  #finish(error?: unknown): void {
    if (this.#over) return
    this.#over = true
    const call = this.#call
    this.#parts.deadlines.unwatch(this)
    if (error !== undefined) {
      call.stopped ??= asGatewayError(error) // a step that hung and goes on later must not begin anything
      this.#answer(error)
    }
    this.#parts.onOver(call)
    if (call.later === undefined) this.#settled()
    else void call.later.then(() => this.#settled())
  }

  /** Until its bill came the plugins that wait for it are needed, and the vendor's request keeps the body in memory. */
  #settled(): void {
    this.#call.done()
    this.#leave()
  }

  /** Also of a hold that a step took after its call was over. */
  #release(): void {
    const { id } = this.#call
    this.#call.release().catch(cause => this.#parts.log.error({ id, err: cause }, "a hold could not be released"))
  }

  /** The one place where errors become answers. No head was sent, so nothing is charged. */
  #answer(thrown: unknown): void {
    const call = this.#call
    const error = asGatewayError(thrown)
    const { code, cause, plugin = call.step } = error
    if (code === "internal" || code === "plugin_failed") this.#parts.onPluginError(plugin)
    this.#release()
    if (error.kind.source === "gateway" && code !== "maintenance") {
      const fields = { id: call.id, route: call.route.path, plugin, code, err: cause ?? error }
      this.#parts.log.error(fields, "call failed")
    }
    if (this.#response.headersSent) return call.client.cut()
    refuse(call.request, this.#response, error, this.#site.dialect(call.route.dialect), call.id, call.headFields())
  }
}
