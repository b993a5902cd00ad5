/** Counts what every call did. Outermost, so that it sees the answers of all other steps too. */

import {
  asGatewayError,
  type Call,
  type Counter,
  type ErrorLabel,
  errorTable,
  type Gauge,
  type Histogram,
  type Host,
  type Outcome,
  type Plugin,
  type Route,
  type Target,
  type Usage,
} from "../core/index.ts"

export default {
  name: "metrics",
  api: 1,
  setup(host) {
    const meters = metersOf(host)
    const inFlight = meters.inFlight.child()
    const routes = new Map<Route, RouteMeters>()
    const ofRoute = (route: Route): RouteMeters => {
      const known = routes.get(route)
      if (known !== undefined) return known
      const made = routeMeters(meters, route)
      routes.set(route, made)
      return made
    }
    host.use({
      on(route) {
        ofRoute(route) // the route's children are made at load
        return true
      },
      async run(call, next) {
        const route = ofRoute(call.route)
        const started = performance.now()
        inFlight.add(1)
        try {
          const outcome = await next()
          route.done(outcome.status, seconds(started), outcome.upstreamMs / 1000)
          const label = labelOf(outcome)
          if (label !== undefined) route.failed(label)
          if (outcome.target !== undefined) route.vendor(call, outcome, outcome.target)
          return outcome
        } catch (error) {
          const { kind } = asGatewayError(error)
          route.done(kind.status, seconds(started), undefined)
          route.failed(kind.label)
          throw error
        } finally {
          inFlight.add(-1)
        }
      },
    })
  },
} satisfies Plugin

const metersOf = ({ metrics }: Host) => {
  const counter = (name: string): Counter => metrics.product(name)
  const histogram = (name: string): Histogram => metrics.product(name)
  const gauge = (name: string): Gauge => metrics.product(name)
  return {
    requests: counter("http_requests_total"),
    durations: histogram("http_request_duration_seconds"),
    overheads: histogram("overhead_seconds"),
    inFlight: gauge("requests_in_flight"),
    errors: counter("errors_total"),
    upstreamRequests: counter("upstream_requests_total"),
    upstreamDurations: histogram("upstream_duration_seconds"),
    streamsEnded: counter("streams_ended_total"),
    tokens: counter("tokens_total"),
  }
}
type Meters = ReturnType<typeof metersOf>

const seconds = (since: number): number => (performance.now() - since) / 1000

interface RouteMeters {
  /** `upstream` seconds are unknown for a call that was refused: then no overhead is told. */
  done(status: number, total: number, upstream: number | undefined): void
  failed(label: ErrorLabel): void
  vendor(call: Call, outcome: Outcome, target: Target): void
}

const routeMeters = (meters: Meters, { path, method }: Route): RouteMeters => {
  const overhead = meters.overheads.child(path)
  const statuses = new Map<number, { count: { add(): void }; duration: { observe(seconds: number): void } }>()
  const ofStatus = (status: number) => {
    const made = {
      count: meters.requests.child(path, method, String(status)),
      duration: meters.durations.child(path, `${Math.floor(status / 100)}xx`),
    }
    statuses.set(status, made)
    return made
  }
  ofStatus(200)
  const targets = new WeakMap<Target, TargetMeters>() // a reload brings others
  return {
    done(status, total, upstream) {
      const { count, duration } = statuses.get(status) ?? ofStatus(status)
      count.add()
      duration.observe(total)
      if (upstream !== undefined) overhead.observe(Math.max(0, total - upstream))
    },
    failed: label => meters.errors.child(path, label).add(),
    vendor(call, outcome, target) {
      let known = targets.get(target)
      if (known === undefined) {
        known = new TargetMeters(meters, call, target)
        targets.set(target, known)
      }
      known.count(outcome)
    },
  }
}

/** What went wrong in a call that had an answer. */
export const labelOf = ({ end, status, attempts }: Outcome): ErrorLabel | undefined => {
  if (end === "abandoned") return "client_left"
  if (end === "delivered" || (end === "refused" && status < 400)) return undefined
  const code = attempts.at(-1)?.error
  if (code !== undefined) return errorTable[code].label
  if (end === "broken") return "vendor_5xx"
  if (status === 429) return "vendor_rate_limited"
  return status < 500 ? "vendor_4xx" : "vendor_5xx"
}

/** What one target's answers on one route are counted by: looked up when the first one comes, kept for all others. */
class TargetMeters {
  readonly #meters: Meters
  readonly #vendor: string
  readonly #model: string
  readonly #duration: ReturnType<Histogram["child"]>
  readonly #ends = new Map<Outcome["end"], ReturnType<Counter["child"]>>()
  readonly #tokens = new Map<TokenType, ReturnType<Counter["child"]>>()

  constructor(meters: Meters, call: Call, target: Target) {
    const resolved = call.find("model")
    this.#meters = meters
    this.#vendor = target.vendor
    this.#model = resolved?.model.name ?? "other"
    const operation = call.route.kind ?? resolved?.model.type ?? "other"
    this.#duration = meters.upstreamDurations.child(this.#vendor, operation)
  }

  count({ attempts, end, streamed, usage, later }: Outcome): void {
    this.#endOf(end).add() // the attempts before the last one were counted as they failed
    this.#duration.observe((attempts.at(-1)?.ms ?? 0) / 1000)
    if (streamed) this.#meters.streamsEnded.child(this.#vendor, end).add()
    this.#used(usage)
    void later?.then(billed => this.#used(billed.usage))
  }

  #endOf(end: Outcome["end"]) {
    const known = this.#ends.get(end)
    if (known !== undefined) return known
    const child = this.#meters.upstreamRequests.child(this.#vendor, this.#model, end)
    this.#ends.set(end, child)
    return child
  }

  #used(usage: Usage | undefined): void {
    if (usage !== undefined) for (const type of tokenTypes) this.#count(type, tokenCounts[type](usage))
  }

  #count(type: TokenType, tokens: number): void {
    if (tokens === 0) return
    let child = this.#tokens.get(type)
    if (child === undefined) {
      child = this.#meters.tokens.child(this.#vendor, this.#model, type)
      this.#tokens.set(type, child)
    }
    child.add(tokens)
  }
}

/** Disjoint; the sides of audio and images count with the text that they stand beside. */
export const tokenCounts = {
  input: (usage: Usage) => (usage.input ?? 0) + (usage.audio_input ?? 0),
  cache_read: (usage: Usage) => usage.cache_read ?? 0,
  cache_write: (usage: Usage) => (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0),
  output: (usage: Usage) => (usage.output ?? 0) + (usage.audio_output ?? 0) + (usage.image_output ?? 0),
} as const
type TokenType = keyof typeof tokenCounts
const tokenTypes = Object.keys(tokenCounts) as TokenType[]
