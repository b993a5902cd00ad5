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
  type Usage,
} from "../core/index.ts"

export default {
  name: "metrics",
  api: 1,
  options: { type: "object", additionalProperties: false, properties: {} },
  setup(host) {
    const meters = metersOf(host)
    const inFlight = meters.inFlight.child()
    const routes = new Map<Route, RouteMeters>()
    const ofRoute = (route: Route): RouteMeters => {
      const known = routes.get(route) ?? routeMeters(meters, route)
      routes.set(route, known)
      return known
    }
    host.use({
      on: route => ofRoute(route) !== undefined, // the route's children are made at load
      async run(call, next) {
        const route = ofRoute(call.route)
        const started = performance.now()
        inFlight.add(1)
        try {
          const outcome = await next()
          route.done(outcome.status, seconds(started), outcome.upstreamMs / 1000)
          const label = labelOf(outcome)
          if (label !== undefined) route.failed(label)
          vendorMeters(meters, call, outcome)
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
  return {
    done(status, total, upstream) {
      const { count, duration } = statuses.get(status) ?? ofStatus(status)
      count.add()
      duration.observe(total)
      if (upstream !== undefined) overhead.observe(Math.max(0, total - upstream))
    },
    failed: label => meters.errors.child(path, label).add(),
  }
}

/** What went wrong in a call that had an answer. */
export const labelOf = ({ end, status, attempts }: Outcome): ErrorLabel | undefined => {
  if (end === "abandoned") return "client_left"
  if (end === "delivered") return undefined
  const code = attempts.at(-1)?.error
  if (code !== undefined) return errorTable[code].label
  if (end === "broken") return "vendor_connect"
  if (status === 429) return "vendor_rate_limited"
  return status < 500 ? "vendor_4xx" : "vendor_5xx"
}

const vendorMeters = (meters: Meters, call: Call, outcome: Outcome): void => {
  const { target, attempts, end, streamed, usage } = outcome
  if (target === undefined) return
  const resolved = call.find("model")
  const model = resolved?.model.name ?? "other"
  const operation = call.route.kind ?? resolved?.model.type ?? "other"
  const last = attempts.length - 1
  for (const [at, attempt] of attempts.entries()) {
    meters.upstreamRequests.child(attempt.vendor, model, at < last ? (attempt.error ?? "failed") : end).add()
    meters.upstreamDurations.child(attempt.vendor, operation).observe(attempt.ms / 1000)
  }
  if (streamed) meters.streamsEnded.child(target.vendor, end).add()
  if (usage === undefined) return
  for (const [type, tokens] of tokensOf(usage)) {
    if (tokens > 0) meters.tokens.child(target.vendor, model, type).add(tokens)
  }
}

/** Disjoint; the sides of audio and images count with the text that they stand beside. */
export const tokensOf = (usage: Usage): readonly [string, number][] => [
  ["input", (usage.input ?? 0) + (usage.audio_input ?? 0)],
  ["cache_read", usage.cache_read ?? 0],
  ["cache_write", (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0)],
  ["output", (usage.output ?? 0) + (usage.audio_output ?? 0) + (usage.image_output ?? 0)],
]
