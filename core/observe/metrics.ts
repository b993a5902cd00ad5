/** Metrics: our own numbers, written by prom-client beside Node's defaults. The owner of prom-client. */

import { collectDefaultMetrics, type Metric, Registry } from "prom-client"
import type { Metrics } from "../plugin.ts"
import { createFamily, type Family } from "./family.ts"
import { type Meter, meters } from "./meters.ts"

export interface MetricsHub {
  /** A metric of the table in `meters.ts`. Throws for another name. */
  product(name: string): ReturnType<Metrics["product"]>
  /** What a plugin gets: its own names are prefixed; asking twice for one name gives the same metric. */
  forPlugin(plugin: string): Metrics
  /** The exposition text. */
  render(): Promise<string>
  readonly contentType: string
  readonly registry: Registry
}

const metricName = /^[a-z][a-z0-9_]*$/
const labelsMax = 3

/**
 * prom-client sorts and hashes the labels at each observation (about 1 us). So a child here is a few plain numbers,
 * and the family is handed to the registry as a metric that computes its lines when it is asked for them.
 */
export const createMetrics = ({ defaults }: { readonly defaults: boolean }): MetricsHub => {
  const registry = new Registry()
  if (defaults) collectDefaultMetrics({ register: registry })
  const known = new Map<string, { readonly meter: Meter; readonly family: Family }>()

  const register = (meter: Meter): Family => {
    const before = known.get(meter.name)
    if (before !== undefined) return sameShape(before.meter, meter) ? before.family : refuse(meter, "has another shape")
    check(meter)
    const family = createFamily(meter)
    known.set(meter.name, { meter, family })
    registry.registerMetric({ name: meter.name, get: family.get } as unknown as Metric)
    return family
  }

  const products = new Map(meters.map(meter => [meter.name, register({ ...meter, name: `tollgate_${meter.name}` })]))
  const product: Metrics["product"] = name => {
    const family = products.get(name)
    if (family === undefined) throw new Error(`No metric ${JSON.stringify(name)} in core/observe/meters.ts`)
    return family.face as ReturnType<Metrics["product"]>
  }

  return {
    product,
    forPlugin(plugin) {
      const prefix = `tollgate_plugin_${plugin.replaceAll("-", "_")}_`
      const own = (
        type: Meter["type"],
        name: string,
        help: string,
        labels: readonly string[],
        buckets?: readonly number[],
      ) => register({ name: prefix + name, type, help, labels, ...(buckets && { buckets }) }).face as never
      return {
        counter: (name, help, labels = []) => own("counter", name, help, labels),
        gauge: (name, help, labels = []) => own("gauge", name, help, labels),
        histogram: (name, help, labels, buckets) => own("histogram", name, help, labels, buckets),
        product,
      }
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
    registry,
  }
}

const refuse = (meter: Meter, why: string): never => {
  throw new Error(`Metric ${meter.name} ${why}`)
}

const sameShape = (one: Meter, other: Meter): boolean =>
  one.type === other.type &&
  one.labels.join() === other.labels.join() &&
  (one.buckets ?? []).join() === (other.buckets ?? []).join()

const check = (meter: Meter): void => {
  if (!metricName.test(meter.name)) refuse(meter, "needs a name of a-z, 0-9 and _")
  if (meter.labels.length > labelsMax) refuse(meter, `has more than ${labelsMax} labels`)
  if (!meter.labels.every(label => metricName.test(label) && label !== "le")) refuse(meter, "has a bad label name")
  if (new Set(meter.labels).size < meter.labels.length) refuse(meter, "repeats a label")
  if (meter.type === "histogram" && !ascending(meter.buckets ?? [])) refuse(meter, "needs ascending buckets")
}

const ascending = (buckets: readonly number[]): boolean =>
  buckets.length > 0 && buckets.every((bound, at) => Number.isFinite(bound) && (at === 0 || bound > buckets[at - 1]!))
