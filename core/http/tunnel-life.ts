/** An open WebSocket lives as a stream does: `total_stream` at most, and while either side says something within `idle`. */

import type { Timeouts } from "../offer.ts"
import type { Watched } from "./deadlines.ts"
import type { ExchangeContext } from "./exchange.ts"
import type { OpenTunnel } from "./upgrade.ts"

type Time = Pick<ExchangeContext, "clock" | "deadlines">

export class TunnelLife implements Watched {
  deadline = 0
  isOver = false
  readonly #tunnel: OpenTunnel
  readonly #timeouts: Timeouts
  readonly #time: Time
  readonly #totalAt: number

  constructor(tunnel: OpenTunnel, timeouts: Timeouts, time: Time) {
    this.#tunnel = tunnel
    this.#timeouts = timeouts
    this.#time = time
    this.#totalAt = time.clock.steady() + timeouts.totalStreamMs
    this.#renew()
    tunnel.onData(() => this.#renew())
    time.deadlines.watch(this)
  }

  end(): void {
    this.#time.deadlines.unwatch(this)
  }

  expire(): void {
    this.isOver = true
    this.#tunnel.close()
  }

  #renew(): void {
    this.deadline = Math.min(this.#totalAt, this.#time.clock.steady() + this.#timeouts.idleMs)
  }
}
