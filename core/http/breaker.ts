/** The health of each vendor secret: which to try, in which order, and when one that failed is tried again. */

import type { Secret, Vendor } from "../offer.ts"
import type { Clock, Gauge } from "../plugin.ts"

/** What an attempt tells about its secret. `unknown`: it ended for reasons of ours before anything could be told. */
export type Verdict = "ok" | "account" | "rate_limited" | "failed" | "unknown"

/** Consecutive failures that open the breaker. */
const failuresMax = 5
const firstRestMs = 5_000
const restMaxMs = 60_000
/** An account fault needs an operator: it is looked at again now and then, by one call. */
const accountRestMs = 30_000
const rateRestMaxMs = 60_000

interface Health {
  failures: number
  /** 0 = closed; else the secret rests until then. */
  openUntil: number
  /** After the rest one call probes; the others still pass it by. */
  probing: boolean
  restMs: number
}

/** Prometheus values of `tollgate_upstream_breaker_state`. */
const states = { closed: 0, probing: 1, open: 2 } as const

export interface Breaker {
  /** Healthy secrets in order of preference for this affinity (the same conversation meets the same secret). */
  order(vendor: Vendor, affinity: string): readonly Secret[]
  /** Claims the secret for one attempt; false while it rests or another call probes it. */
  claim(vendor: Vendor, secret: Secret): boolean
  report(vendor: Vendor, secret: Secret, verdict: Verdict, restMs?: number): void
  /** Milliseconds until a secret of the vendor may be tried again; 0 when one may now. */
  restMs(vendor: Vendor): number
}

export const createBreaker = (clock: Clock, gauge: Gauge): Breaker => {
  const healths = new Map<string, Health>()
  const nameOf = (vendor: Vendor, secret: Secret): string => `${vendor.name}\n${secret.name}`
  const show = (vendor: Vendor, secret: Secret, state: number): void => gauge.child(vendor.name, secret.name).set(state)

  const rest = (vendor: Vendor, secret: Secret, health: Health, ms: number): void => {
    health.openUntil = clock.now() + ms
    health.probing = false
    show(vendor, secret, states.open)
  }

  const healthOf = (vendor: Vendor, secret: Secret): Health => {
    const name = nameOf(vendor, secret)
    let health = healths.get(name)
    if (health === undefined) {
      health = { failures: 0, openUntil: 0, probing: false, restMs: firstRestMs }
      healths.set(name, health)
      show(vendor, secret, states.closed)
    }
    return health
  }

  const failed = (vendor: Vendor, secret: Secret, health: Health): void => {
    health.failures += 1
    if (!health.probing && health.failures < failuresMax) return
    rest(vendor, secret, health, health.restMs)
    health.restMs = Math.min(restMaxMs, health.restMs * 2)
  }

  const recovered = (vendor: Vendor, secret: Secret, health: Health): void => {
    if (health.failures === 0 && health.openUntil === 0) return
    Object.assign(health, { failures: 0, openUntil: 0, probing: false, restMs: firstRestMs } satisfies Health)
    show(vendor, secret, states.closed)
  }

  return {
    order: (vendor, affinity) =>
      vendor.secrets.length < 2
        ? vendor.secrets
        : [...vendor.secrets].sort((a, b) => rank(affinity, b.name) - rank(affinity, a.name)),

    claim: (vendor, secret) => {
      const health = healthOf(vendor, secret)
      if (health.openUntil === 0) return true
      if (health.probing || health.openUntil > clock.now()) return false
      health.probing = true
      show(vendor, secret, states.probing)
      return true
    },

    report: (vendor, secret, verdict, restMs) => {
      const health = healthOf(vendor, secret)
      if (verdict === "ok") return recovered(vendor, secret, health)
      if (verdict === "account") return rest(vendor, secret, health, accountRestMs)
      if (verdict === "failed") return failed(vendor, secret, health)
      // A limit without a time, or without another secret to turn to, tells nothing of the next call.
      if (verdict === "rate_limited" && restMs !== undefined && vendor.secrets.length > 1)
        rest(vendor, secret, health, Math.min(rateRestMaxMs, restMs))
      else health.probing = false
    },

    restMs: vendor => {
      const now = clock.now()
      const waits = vendor.secrets.map(secret =>
        Math.max(0, (healths.get(nameOf(vendor, secret))?.openUntil ?? 0) - now),
      )
      return waits.length === 0 ? 0 : Math.min(...waits)
    },
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
