/** The contract of what the core offers to a plugin: its host, and the tools that the host hands out. */

import type { IncomingHttpHeaders } from "node:http"
import type { Adapter, Dialect } from "./adapter.ts"
import type { ErrorCode, ErrorOptions, GatewayError } from "./errors.ts"
import type { Catalog, PriceCard, Priced, PriceInput } from "./offer.ts"
import type { Bill, Principal, Route, Settled, Step } from "./plugin.ts"
import type {
  Balance,
  ChargeDetail,
  Directory,
  MemberRef,
  Records,
  UsageBook,
  WindowLimit,
  Windows,
} from "./state/store.ts"

export interface Clock {
  /** Unix milliseconds, for dates and ids: an operator or a time server may set it, forwards and back. */
  now(): number
  /** Milliseconds of a clock that is never set: for measuring how long something takes. */
  steady(): number
  /** Runs once after `ms`; the function returned cancels it. Never keeps the process alive. */
  after(ms: number, run: () => void): () => void
}

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Label values are resolved once: keep the child, not the family. */
export interface Counter {
  child(...labels: string[]): { add(value?: number): void }
}
export interface Gauge {
  child(...labels: string[]): { set(value: number): void; add(value: number): void }
}
export interface Histogram {
  child(...labels: string[]): { observe(seconds: number): void }
}

/** A metric of the product's own table: use the verb that its type has. */
export interface ProductMetric {
  child(...labels: string[]): { add(value?: number): void; set(value: number): void; observe(seconds: number): void }
}

/** Registers metrics. A plugin's own names get the prefix `tollgate_plugin_<plugin>_`. */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter
  gauge(name: string, help: string, labels?: readonly string[]): Gauge
  histogram(name: string, help: string, labels: readonly string[], buckets: readonly number[]): Histogram
  /** A metric of the product's own table (`core/observe/meters.ts`), by its name without the prefix. */
  product(name: string): ProductMetric
}

/** Credits set aside for one call. Renewed by the ledger until it ends. */
export interface Hold {
  /** What was set aside; less than asked for when less was available. */
  readonly micros: number
  /** Charges the price and gives the rest back; `durable: false` when the store was not reachable in time. */
  settle(priced: Priced, bill: Bill): Promise<Settled>
  release(): Promise<void>
}

export interface HoldOptions {
  /** `call.id`: one hold and one charge for each. */
  readonly id: string
  readonly principal: Principal
  /** What is set aside, or as much of it as there is. Micros: 1,000,000 are a credit. */
  readonly micros: number
  /** Less than this available is `credits_exhausted`. */
  readonly least: number
  /** How many holds a member may make in any window; absent: any number. */
  readonly reservations?: WindowLimit
  /** What stands in the ledger's row beside the amount. */
  readonly detail: Omit<ChargeDetail, "usage" | "source" | "priceDigest" | "key">
}

export interface Ledger {
  /** @throws GatewayError `credits_exhausted` (402), `reservations_exceeded` (429), `store_unavailable` (503) */
  hold(options: HoldOptions): Promise<Hold>
  balance(member: MemberRef): Promise<Balance>
  /** Once per charge; the micros given back, 0 when it was given back before, `undefined` when there is none. */
  refund(id: string, member: MemberRef, reason: string): Promise<number | undefined>
}

/** What a plugin may use of the store; each throws `store_unavailable` (503, with `retry-after`) when it is down. */
export interface HostStore {
  readonly directory: Directory
  readonly windows: Windows
  readonly records: Records
  readonly usage: UsageBook
}

/** A request that met no route: an unknown path or method, an ambiguous head, bytes that are none. */
export interface Stray {
  /** `x-request-id` of the answer. */
  readonly id: string
  readonly error: GatewayError
  /** Absent where the bytes made no request. The path is without its query and at most 256 characters. */
  readonly request?: { readonly method: string; readonly path: string; readonly headers: IncomingHttpHeaders }
}

export interface Host {
  /** A place in the pipeline, behind those of the lines above. Throws when it has no `run`. Only in `setup`, like the next three. */
  use(step: Step): void
  /** An endpoint. Two of one method and path stop the start. */
  route(route: Route): void
  /** How errors look, for routes that name it. Throws when the name is taken. */
  dialect(dialect: Dialect): void
  /** For vendors that name it, with its dialect. Throws when a part is missing or a name is taken. */
  adapter(adapter: Adapter): void
  /** Told of each request that met no route, when it is answered. Only in `setup`. */
  onStray(tell: (stray: Stray) => void): void
  /** An error to throw. Throws at once when the table in `errors.ts` has no such code. */
  error(code: ErrorCode, message: string, options?: ErrorOptions): GatewayError
  readonly metrics: Metrics
  readonly log: Log
  readonly clock: Clock
  /** In [0, 1); seeded in tests. */
  readonly random: () => number
  readonly store: HostStore
  readonly ledger: Ledger
  readonly catalog: Catalog
  /** The adapter that speaks to this vendor. Ask during a call, not in `setup`: others may bring it later. */
  adapterOf(vendor: string): Adapter
  /** A registered dialect, by its name. Ask during a call, not in `setup`: others may register it later. */
  dialectOf(name: string): Dialect | undefined
  /** The day of a time, `YYYY-MM-DD`, in the deployment's time zone, whose IANA name is `timezone`. */
  readonly day: (at: number) => string
  readonly timezone: string
  /** The native family's path prefixes: `mounts` of gateway.yaml. */
  mounts(family: string): readonly string[]
  /** Lives as long as the process, across reloads. */
  shared<T>(key: string, make: () => T): T
  price(card: PriceCard, input: PriceInput): Priced
}
