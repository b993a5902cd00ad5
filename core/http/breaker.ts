/**
 * The health of each vendor secret, and of each model that is served with it: which to try, in which order, and when one
 * that failed is tried again. A model that fails rests alone: the others behind the same secret are none the worse.
 */

import type { Secret, Target, Vendor } from "../offer.ts"
import type { Clock, Gauge } from "../plugin.ts"
import { digestOf } from "./secret-digest.ts"

/**
 * What an attempt tells. `account`, `rate_limited` and `unreachable` are about the secret, `failed` about the model.
 * `unknown`: it ended for reasons of ours before anything could be told.
 */
export type Verdict = "ok" | "account" | "rate_limited" | "unreachable" | "failed" | "unknown"

/** Consecutive failures that open the breaker. */
const failuresMax = 5
const firstRestMs = 5_000
const restMaxMs = 60_000
/** An account fault needs an operator: it is looked at again now and then, by one call. */
const accountRestMs = 30_000
const rateRestMaxMs = 60_000

/** Prometheus values of `tollgate_upstream_breaker_state`. */
const states = { closed: 0, probing: 1, open: 2 } as const

export interface Breaker {
  /**
   * Takes the vendors of a configuration, before the first call to them, and all targets of its models. What is unchanged
   * keeps its health. What left keeps it for the calls that still run with it: they tell nothing of what came instead.
   */
  keep(vendors: Iterable<Vendor>, targets: Iterable<Target>): void
  /** The secrets in order of preference for this affinity (the same conversation meets the same secret). */
  order(vendor: Vendor, affinity: string): readonly Secret[]
  /** Claims the secret for one attempt at a model; false while either rests or another call probes it. */
  claim(vendor: Vendor, secret: Secret, model: string): boolean
  report(vendor: Vendor, secret: Secret, model: string, verdict: Verdict, restMs?: number): void
  /** Until the model may be tried again with some secret. */
  rest(vendor: Vendor, model: string): Rest
}

export interface Rest {
  /** 0 when it may be tried now. */
  readonly ms: number
  /** The vendor's limit of requests is the reason, and no fault. */
  readonly limited: boolean
}

/** Of some rests, the one that ends first. */
export const shortest = (rests: readonly Rest[]): Rest =>
  rests.reduce((least, rest) => (rest.ms < least.ms ? rest : least), rests[0] ?? { ms: 0, limited: false })

export const createBreaker = (clock: Clock, gauge: Gauge): Breaker => {
  let present: ReadonlyMap<string, SecretHealth> = new Map()
  /** By the objects of a configuration: found without making a text for each call, and gone with its last call. */
  const healths = new WeakMap<Vendor, ReadonlyMap<Secret, SecretHealth>>()
  const healthOf = (vendor: Vendor, secret: Secret): SecretHealth => healths.get(vendor)!.get(secret)!
  const made = (vendor: Vendor, secret: Secret): SecretHealth => {
    const child = gauge.child(vendor.name, secret.name)
    return new SecretHealth(clock, state => child.set(state))
  }
  return {
    keep: (vendors, targets) => {
      const targetsOf = Map.groupBy(targets, target => target.vendor)
      const next = new Map<string, SecretHealth>()
      for (const vendor of vendors) {
        const models = new Set(targetsOf.get(vendor.name)?.map(target => target.model))
        const own = new Map<Secret, SecretHealth>()
        for (const secret of vendor.secrets) {
          const identity = identityOf(vendor, secret)
          const health = present.get(identity) ?? made(vendor, secret)
          health.keep(models)
          own.set(secret, health)
          next.set(identity, health)
        }
        healths.set(vendor, own)
      }
      for (const [identity, health] of present) if (!next.has(identity)) health.retire()
      present = next
    },
    order: (vendor, affinity) =>
      vendor.secrets.length < 2
        ? vendor.secrets
        : [...vendor.secrets].sort((a, b) => rank(affinity, b.name) - rank(affinity, a.name)),
    claim: (vendor, secret, model) => healthOf(vendor, secret).claim(model),
    report: (vendor, secret, model, verdict, restMs) => {
      // A limit without a time, or without another secret to turn to, tells nothing of the next call.
      const told = verdict !== "rate_limited" || (restMs !== undefined && vendor.secrets.length > 1)
      healthOf(vendor, secret).report(model, told ? verdict : "unknown", restMs)
    },
    rest: (vendor, model) => shortest(vendor.secrets.map(secret => healthOf(vendor, secret).rest(model))),
  }
}

/** Health belongs to one credential at one address, presented in one way. */
const identityOf = ({ name, adapter, origin, options }: Vendor, secret: Secret): string =>
  JSON.stringify([name, adapter, origin, options, secret.name, digestOf(secret)])

class SecretHealth {
  readonly #clock: Clock
  #show: (state: number) => void
  readonly #whole = new Health()
  readonly #models = new Map<string, Health>()
  /** Models that are no more; what their last calls tell is shown to nobody. */
  readonly #left = new Set<string>()
  #shown: number = states.closed

  constructor(clock: Clock, show: (state: number) => void) {
    this.#clock = clock
    this.#show = show
    show(states.closed)
  }

  /** Forgets the other models: one that left would be shown as resting for ever. */
  keep(models: ReadonlySet<string>): void {
    for (const model of models) if (this.#left.delete(model)) this.#models.delete(model)
    for (const model of this.#models.keys()) if (!models.has(model)) this.#left.add(model)
    this.#tell()
  }

  /** From now on the gauge is that of its successor, if there is one. */
  retire(): void {
    this.#show(states.closed)
    this.#show = () => {}
  }

  claim(model: string): boolean {
    const both = this.#both(model)
    const now = this.#clock.steady()
    if (both.some(health => !health.isFree(now))) return false
    for (const health of both) health.probe()
    this.#tell()
    return true
  }

  report(model: string, verdict: Verdict, restMs: number | undefined): void {
    const both = this.#both(model)
    const [whole, own] = both
    const now = this.#clock.steady()
    const failed = verdict === "failed" ? own : verdict === "unreachable" ? whole : undefined
    for (const health of both) {
      if (verdict === "ok") health.recover()
      else if (health !== failed) health.leave()
    }
    failed?.fail(now)
    if (verdict === "account") whole.rest(now, accountRestMs)
    if (verdict === "rate_limited") whole.rest(now, Math.min(rateRestMaxMs, restMs ?? 0), true)
    this.#tell()
  }

  rest(model: string): Rest {
    const [whole, own] = this.#both(model)
    const last = own.openUntil > whole.openUntil ? own : whole
    return { ms: Math.max(0, last.openUntil - this.#clock.steady()), limited: last.limited }
  }

  #both(model: string): readonly [whole: Health, own: Health] {
    let own = this.#models.get(model)
    if (own === undefined) {
      own = new Health()
      this.#models.set(model, own)
    }
    return [this.#whole, own]
  }

  /** The worst of them. */
  #tell(): void {
    let worst = this.#whole.state
    for (const [model, { state }] of this.#models) if (state > worst && !this.#left.has(model)) worst = state
    if (worst === this.#shown) return
    this.#shown = worst
    this.#show(worst)
  }
}

class Health {
  #failures = 0
  /** 0 = closed; else it rests until then. */
  openUntil = 0
  /** It rests because of the vendor's limit. */
  limited = false
  /** After the rest one call probes; the others still pass it by. */
  #probing = false
  #restMs = firstRestMs

  get state(): number {
    return this.openUntil === 0 ? states.closed : this.#probing ? states.probing : states.open
  }

  isFree(now: number): boolean {
    return this.openUntil === 0 || (!this.#probing && this.openUntil <= now)
  }

  probe(): void {
    this.#probing = this.openUntil !== 0
  }

  /** The probe told nothing: the next call may be one. */
  leave(): void {
    this.#probing = false
  }

  rest(now: number, ms: number, limited = false): void {
    this.openUntil = now + ms
    this.limited = limited
    this.#probing = false
  }

  fail(now: number): void {
    this.#failures += 1
    if (!this.#probing && this.#failures < failuresMax) return
    this.rest(now, this.#restMs)
    this.#restMs = Math.min(restMaxMs, this.#restMs * 2)
  }

  recover(): void {
    this.#failures = 0
    this.openUntil = 0
    this.limited = false
    this.#probing = false
    this.#restMs = firstRestMs
  }
}

/** Rendezvous hashing (FNV-1a): a secret that leaves moves only its own conversations. */
const rank = (affinity: string, name: string): number => {
  let hash = 0x811c9dc5
  for (const text of [affinity, "\n", name]) {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  hash ^= hash >>> 15
  return Math.imul(hash, 0x2c1b3ce5) >>> 0
}
