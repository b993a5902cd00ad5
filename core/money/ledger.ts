/** The ledger of the gateway: holds before a call, one settle or release after it, whatever the store does meanwhile. */

import { GatewayError } from "../errors.ts"
import { soundUsage } from "../kit/sound-usage.ts"
import type { Priced } from "../offer.ts"
import type { Bill, Clock, Hold, HoldOptions, Ledger, Log, Metrics, Settled } from "../plugin.ts"
import type { ChargeAnswer, HoldAnswer, HoldRequest, Store } from "../state/store.ts"
import { type MoneyMeters, moneyMeters } from "./meters.ts"
import { type Pending, Persistence } from "./persistence.ts"
import { Running, type RunningHold } from "./running.ts"

export interface LedgerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly holdLifeMs: number
}

export interface RunningLedger extends Ledger {
  /** Holds that are neither settled nor released yet. */
  activeHolds(): number
  /** Tells in the log, a line for each, the charges and releases that are not durable: for who waits no longer. */
  tell(): void
  /**
   * Waits until every charge and release is durable, but no longer than it may: what is left is told in the log, a line
   * for each. Call it after the last call ended.
   *
   * @returns how many were left
   */
  stop(withinMs: number): Promise<number>
}

/** The model of a refund is in the charge's own row; here only the sum is known. */
const unknownModel = "other"

/** So many holds of unknown fate are given back actively; beyond that, they lapse. */
const doubtfulMax = 1_000

interface Parts {
  readonly store: Store
  readonly meters: MoneyMeters
  readonly persistence: Persistence
  readonly running: Running
}

export const createLedger = ({ store, clock, log, metrics, holdLifeMs }: LedgerOptions): RunningLedger => {
  const meters = moneyMeters(metrics)
  const persistence = new Persistence(clock, log)
  const running = new Running({ store, clock, log, meters, holdLifeMs })
  const parts: Parts = { store, meters, persistence, running }
  return {
    async hold(options) {
      const micros = await place(parts, options)
      meters.count("held", options.detail.model, micros)
      return new CallHold(parts, options, micros, clock.steady())
    },
    balance: member => store.accounts.balance(member),
    async refund(id, member, reason) {
      const micros = await store.accounts.refund(id, member, reason)
      meters.count("refunded", unknownModel, micros ?? 0)
      return micros
    },
    activeHolds: () => running.size,
    async stop(withinMs) {
      const left = await persistence.end(withinMs)
      running.stop()
      tellAll(log, left)
      return left.length
    },
    tell: () => tellAll(log, persistence.pending),
  }
}

const tellAll = (log: Log, all: readonly Pending[]): void => {
  for (const pending of all) log.error({ ...pending }, unconfirmed[pending.unconfirmed])
}

/** The last try may have reached the store, its answer not us. */
const unconfirmed: Readonly<Record<Pending["unconfirmed"], string>> = {
  charge: "the store has not confirmed a charge: `tollgate ledger settle` charges it, if it is not there",
  release: "the store has not confirmed a release: without it the hold lapses by itself",
}

/** What was set aside. */
const place = async (parts: Parts, options: HoldOptions): Promise<number> => {
  const { id, principal: member, micros, least, reservations } = options
  const answer = await asked(parts, { id, member, micros, least, ...(reservations && { reservations }) })
  if (answer.state === "held") return answer.micros
  throw refusals[answer.state]()
}

const asked = async ({ store, persistence }: Parts, request: HoldRequest): Promise<HoldAnswer> => {
  try {
    return await store.accounts.hold(request)
  } catch (error) {
    const { id, member } = request
    // The answer may have been lost after the hold was made.
    if (persistence.size < doubtfulMax)
      void persistence.keep(pendingOf("release", request), () => store.accounts.release(id, member))
    throw error
  }
}

/** A principal is a member too, and more than may stand in a log. */
const pendingOf = (
  unconfirmed: Pending["unconfirmed"],
  { id, member: { organisation, member }, micros }: Pick<HoldRequest, "id" | "member" | "micros">,
): Pending => ({ unconfirmed, id, organisation, member, micros })

/** Texts and code of the specification, sections 6 and 7; the reservation limit has no `retry-after`. */
const refusals: Readonly<Record<Exclude<HoldAnswer["state"], "held">, () => GatewayError>> = {
  exhausted: () => new GatewayError("credits_exhausted", "Credit balance exhausted"),
  reservations_exceeded: () => {
    const message = "Too many reservation requests. Please try again later."
    return new GatewayError("reservations_exceeded", message, { detail: { code: 6005, message } })
  },
}

/** One call's hold: the first of settle and release counts, a later one gets the first one's answer. */
class CallHold implements Hold {
  readonly micros: number
  readonly #parts: Parts
  readonly #options: HoldOptions
  readonly #entry: RunningHold
  #ended: Promise<Settled> | undefined

  constructor(parts: Parts, options: HoldOptions, micros: number, since: number) {
    this.micros = micros
    this.#parts = parts
    this.#options = options
    this.#entry = { id: options.id, member: options.principal, since }
    parts.running.add(this.#entry)
  }

  settle(priced: Priced, bill: Bill): Promise<Settled> {
    this.#ended ??= this.#settle(priced, bill)
    return this.#ended
  }

  async release(): Promise<void> {
    this.#ended ??= this.#release()
    await this.#ended
  }

  async #settle({ micros, digest }: Priced, { usage, source }: Bill): Promise<Settled> {
    const { id, principal: member, detail } = this.#options
    const row = { ...detail, key: member.key, usage: soundUsage(usage), source, priceDigest: digest }
    const request = { id, member, micros, detail: row }
    const charge = async (): Promise<ChargeAnswer> => {
      const answer = await this.#parts.store.accounts.settle(request)
      this.#count(answer)
      return answer
    }
    const answer = await this.#keep({ ...pendingOf("charge", request), detail: row }, charge)
    return answer === undefined ? { micros, durable: false } : { micros: answer.charged, durable: true }
  }

  async #release(): Promise<Settled> {
    const { id, principal: member, detail } = this.#options
    const released = async (): Promise<true> => {
      await this.#parts.store.accounts.release(id, member)
      this.#parts.meters.count("released", detail.model, this.micros)
      return true
    }
    const done = await this.#keep(pendingOf("release", { id, member, micros: this.micros }), released)
    return { micros: 0, durable: done === true }
  }

  /** Counted and renewed until the store has it, however long ago its call ended. */
  #keep<T>(what: Pending, work: () => Promise<T>): Promise<T | undefined> {
    return this.#parts.persistence.keep(what, work, () => this.#parts.running.remove(this.#entry))
  }

  #count({ charged, shortfall }: ChargeAnswer): void {
    const { model } = this.#options.detail
    this.#parts.meters.count("settled", model, charged)
    this.#parts.meters.count("shortfall", model, shortfall)
    this.#parts.meters.count("released", model, this.micros - charged)
  }
}
