/** What is counted and logged of one attempt. How the last attempt of an outcome ended is counted by who watches outcomes. */

import type { Log, Metrics } from "../plugin.ts"
import type { GatewayCall } from "./call.ts"

export class AttemptMetrics {
  readonly #call: GatewayCall
  readonly #vendor: string
  readonly #metrics: Metrics
  readonly #log: Log

  constructor(call: GatewayCall, vendor: string, { metrics, log }: { readonly metrics: Metrics; readonly log: Log }) {
    this.#call = call
    this.#vendor = vendor
    this.#metrics = metrics
    this.#log = log
  }

  /** An attempt that is the last of no outcome: another one followed, or an error of ours. */
  failed(reason: string, ms: number): void {
    const model = this.#call.find("model")?.model
    const operation = this.#call.route.kind ?? model?.type ?? "other"
    const name = model?.name ?? "other"
    this.#metrics.product("upstream_requests_total").child(this.#vendor, name, reason).add()
    this.#metrics
      .product("upstream_duration_seconds")
      .child(this.#vendor, operation)
      .observe(ms / 1000)
  }

  firstToken(seconds: number): void {
    const model = this.#call.find("model")?.model.name ?? "other"
    this.#metrics.product("stream_first_token_seconds").child(this.#vendor, model).observe(seconds)
  }

  /** An answer, or an event of it, is too large to be read. */
  overflow(): void {
    this.#metrics.product("watch_overflow_total").child(this.#vendor, "event").add()
  }

  surprise(kind: string): void {
    this.#metrics.product("vendor_surprises_total").child(this.#vendor, kind).add()
  }

  /** A step's billing or watcher threw when the answer was on its way: no error answer can tell it any more. */
  pluginFailed(cause: unknown, plugin = this.#call.step): void {
    this.#metrics.product("plugin_errors_total").child(plugin).add()
    this.#log.error({ id: this.#call.id, plugin, err: cause }, "a step failed during the answer")
  }
}
