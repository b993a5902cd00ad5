/** One metric with its children: plain numbers that cost nothing to change, and their samples when asked for. */

import type { Counter, Gauge, Histogram } from "../plugin.ts"
import type { Meter } from "./meters.ts"

/** Lines of the exposition, in the shape that prom-client's registry reads. */
export interface Samples {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly aggregator: "sum"
  readonly values: readonly Sample[]
}

export interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

export interface Family {
  /** What callers hold; which of the three it is follows from the meter's type. */
  readonly face: Counter | Gauge | Histogram
  readonly get: () => Promise<Samples>
}

/** A bound against labels that are fed from requests: beyond it every new label value becomes `other`. */
export const childrenMax = 10_000

interface Child {
  samples(name: string, labels: Readonly<Record<string, string>>): Iterable<Sample>
}

/** A wrong number is left out rather than thrown: a metric must neither break a call nor be broken by one. */
class CounterChild implements Child {
  value = 0

  add(value = 1): void {
    if (value >= 0 && value < Number.POSITIVE_INFINITY) this.value += value
  }

  samples(_name: string, labels: Readonly<Record<string, string>>): Iterable<Sample> {
    return [{ labels, value: this.value }]
  }
}

class GaugeChild implements Child {
  value = 0

  set(value: number): void {
    if (Number.isFinite(value)) this.value = value
  }

  add(value: number): void {
    if (Number.isFinite(value)) this.value += value
  }

  samples(_name: string, labels: Readonly<Record<string, string>>): Iterable<Sample> {
    return [{ labels, value: this.value }]
  }
}

class HistogramChild implements Child {
  readonly #bounds: readonly number[]
  /** Per bucket, not cumulative; the last one is beyond all bounds. */
  readonly #counts: Float64Array
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  observe(seconds: number): void {
    if (!Number.isFinite(seconds)) return
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && seconds > bounds[at]!) at += 1
    this.#counts[at]! += 1
    this.#sum += seconds
  }

  *samples(name: string, labels: Readonly<Record<string, string>>): Iterable<Sample> {
    let total = 0
    for (let at = 0; at < this.#counts.length; at += 1) {
      total += this.#counts[at]!
      yield { metricName: `${name}_bucket`, labels: { ...labels, le: this.#bounds[at] ?? "+Inf" }, value: total }
    }
    yield { metricName: `${name}_sum`, labels, value: this.#sum }
    yield { metricName: `${name}_count`, labels, value: total }
  }
}

const makers: Readonly<Record<Meter["type"], (meter: Meter) => CounterChild | GaugeChild | HistogramChild>> = {
  counter: () => new CounterChild(),
  gauge: () => new GaugeChild(),
  histogram: meter => new HistogramChild(meter.buckets ?? []),
}

export const createFamily = (meter: Meter): Family => {
  const { name, type, help, labels: names } = meter
  const children = new Map<string, { readonly labels: Readonly<Record<string, string>>; readonly child: Child }>()

  const make = (key: string, values: readonly string[]): Child => {
    const child = makers[type](meter)
    children.set(key, { labels: Object.fromEntries(names.map((label, at) => [label, values[at]!])), child })
    return child
  }

  const child = (...values: string[]): Child => {
    if (values.length !== names.length) throw new Error(`${name} takes ${names.length} labels, not ${values.length}`)
    const key = keyOf(values)
    const found = children.get(key)
    if (found !== undefined) return found.child
    if (children.size < childrenMax) return make(key, values)
    const others = names.map(() => "other")
    return children.get(keyOf(others))?.child ?? make(keyOf(others), others)
  }

  if (names.length === 0) child() // shown as 0 from the start
  const get = async (): Promise<Samples> => {
    const values: Sample[] = []
    for (const { labels, child } of children.values())
      for (const sample of child.samples(name, labels)) values.push(sample)
    return { name, help, type, aggregator: "sum", values }
  }
  return { face: { child } as unknown as Family["face"], get }
}

const keyOf = (values: readonly string[]): string => (values.length === 1 ? values[0]! : values.join("\u0000"))
