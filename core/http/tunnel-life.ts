/** An open WebSocket lives as a stream does: `total_stream` at most, and while either side says something within `idle`. */

import type { Timeouts } from "../offer.ts"
import type { Watched } from "./deadlines.ts"
import type { ExchangeContext } from "./exchange.ts"

export class TunnelLife implements Watched {
  isOver = false
  deadline = Number.POSITIVE_INFINITY
  #totalAt = Number.POSITIVE_INFINITY
  #close: (() => void) | undefined
  readonly #timeouts: Timeouts
  readonly #context: Pick<ExchangeContext, "clock" | "deadlines">

  constructor(timeouts: Timeouts, context: Pick<ExchangeContext, "clock" | "deadlines">) {
    this.#timeouts = timeouts
    this.#context = context
  }

  begin({ close }: { close(): void }): void {
    this.#close = close
    this.#totalAt = this.#context.clock.steady() + this.#timeouts.totalStreamMs
    this.renew()
    this.#context.deadlines.watch(this)
  }

  renew(): void {
    this.deadline = Math.min(this.#totalAt, this.#context.clock.steady() + this.#timeouts.idleMs)
  }

  end(): void {
    this.#context.deadlines.unwatch(this)
  }

  expire(): void {
    this.isOver = true
    this.#close?.()
  }
}
