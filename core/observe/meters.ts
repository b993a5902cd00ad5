/** Every metric of the product as data. Cardinality is settled here: closed label sets, at most three labels. */

export interface Meter {
  /** Without the prefix `tollgate_`. */
  readonly name: string
  readonly type: "counter" | "gauge" | "histogram"
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[]
}

const counter = (name: string, labels: readonly string[], help: string): Meter => ({
  name,
  type: "counter",
  help,
  labels,
})
const gauge = (name: string, labels: readonly string[], help: string): Meter => ({ name, type: "gauge", help, labels })
const histogram = (name: string, labels: readonly string[], buckets: readonly number[], help: string): Meter => ({
  name,
  type: "histogram",
  help,
  labels,
  buckets,
})

const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const overheadSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1]
const upstreamSeconds = Array.from({ length: 15 }, (_, power) => 2 ** power / 100) // 0.01 .. 163.84
const firstTokenSeconds = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 45, 60,
]
const operationSeconds = [1, 5, 10, 30, 60, 120, 300, 600, 1800]
const dependencySeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25]

export const meters: readonly Meter[] = [
  counter("http_requests_total", ["route", "method", "status"], "Answered requests; route is the template or other"),
  histogram("http_request_duration_seconds", ["route", "status_class"], requestSeconds, "From head to last byte"),
  histogram("overhead_seconds", ["route"], overheadSeconds, "Request time minus waiting for the vendor"),
  gauge("requests_in_flight", [], "Requests being served"),
  gauge("body_bytes_in_flight", [], "Bytes of request bodies in memory"),
  counter("errors_total", ["route", "error_type"], "Errors by the label of the error table"),
  counter("upstream_requests_total", ["vendor", "model", "outcome"], "Attempts at vendors; catalog names only"),
  histogram("upstream_duration_seconds", ["vendor", "operation"], upstreamSeconds, "Attempts, to their last byte"),
  counter("upstream_retries_total", ["vendor", "reason"], "Attempts that followed a failed one on the same target"),
  counter("upstream_fallbacks_total", ["vendor", "reason"], "Attempts that followed a failed one on another target"),
  gauge("upstream_breaker_state", ["vendor", "secret"], "0 closed, 1 half open, 2 open; by the secret's public name"),
  histogram("stream_first_token_seconds", ["vendor", "model"], firstTokenSeconds, "Until the first content"),
  counter("streams_ended_total", ["vendor", "how"], "Streams by outcome: delivered, refused, abandoned, broken"),
  counter(
    "tokens_total",
    ["vendor", "model", "type"],
    "Tokens in disjoint types: input, cache_read, cache_write, output",
  ),
  counter(
    "usage_missing_total",
    ["vendor", "model"],
    "Answers billed by what was counted, because the vendor reported no usage",
  ),
  counter("usage_unpriced_total", ["vendor", "model"], "Used buckets that the price card does not know"),
  counter("watch_overflow_total", ["vendor", "kind"], "Events over the usage reader's bound"),
  counter("vendor_surprises_total", ["vendor", "kind"], "Unknown events, missing indexes, late usage"),
  counter("credits_total", ["kind", "model"], "Credits held, settled, released, refunded; and shortfall"),
  gauge("ledger_holds", [], "Open holds of this process"),
  gauge("ledger_hold_age_seconds_max", [], "Age of this process's oldest open hold"),
  counter("ledger_lapsed_total", [], "Holds that lapsed before they were settled or released"),
  gauge("operations", ["kind", "state"], "Asynchronous operations seen by this process"),
  histogram("operation_duration_seconds", ["kind", "outcome"], operationSeconds, "From acceptance to the final poll"),
  counter("rate_limited_total", ["bucket"], "Requests refused by a rate limit"),
  histogram("dependency_duration_seconds", ["dependency", "op"], dependencySeconds, "Calls to the store"),
  counter("dependency_errors_total", ["dependency", "op"], "Failed calls to the store"),
  counter("config_reloads_total", ["outcome"], "Reloads of the configuration"),
  gauge("config_last_success_timestamp_seconds", [], "When the running configuration was loaded, Unix seconds"),
  gauge("build_info", ["version", "catalog_digest"], "1 for what runs now"),
  histogram(
    "plugin_duration_seconds",
    ["plugin"],
    dependencySeconds,
    "Own time of a step, without next(); 1 call in 100",
  ),
  counter("plugin_errors_total", ["plugin"], "Calls that a plugin failed by throwing or hanging"),
]
