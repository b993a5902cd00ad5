/** The contract between the core and its plugins. */

import type { IncomingHttpHeaders } from "node:http"
import type { Adapter, PartWords, StreamEvent } from "./adapter.ts"
import type { ErrorCode } from "./errors.ts"
import type { Host } from "./host.ts"
import type { Bucket, JsonSchema, Model, ModelType, PriceCard, Target, Usage } from "./offer.ts"
import type { Identity, MemberRef, UsageSource } from "./state/store.ts"

export type * from "./host.ts"

// ---- plugins ----

export interface Plugin<Options = never> {
  /** `^[a-z][a-z0-9-]*$`, unique: prefix of its logs and metrics. */
  readonly name: string
  readonly api: 1
  /** Endpoints are loaded by `endpoints`, everything else by its line in `plugins`. */
  readonly kind?: "endpoint"
  /** A bad or unknown option stops the start, with file and line. Defaults are filled in. */
  readonly options?: JsonSchema
  setup(host: Host, options: Options): undefined | Teardown | Promise<undefined | Teardown> | void | Promise<void>
}

export type Teardown = () => void | Promise<void>

/** One place in the pipeline. */
export interface Step {
  /** Evaluated once per route at load; absent = every route. */
  readonly on?: (route: Route) => boolean
  /** Proven per route at load. */
  readonly needs?: readonly (keyof Facts)[]
  readonly provides?: readonly (keyof Facts)[]
  /** The bounds that it sets to calls of a route, in a few words for `tollgate explain`. */
  readonly bounds?: (route: Route) => string
  run(call: Call, next: () => Promise<Outcome>): Promise<Outcome>
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** What a request asks for, read from its top-level fields: the size of a hold. */
export interface Demand {
  readonly stream: boolean
  /** The output limit that the request sets, in tokens. */
  readonly maxOutput?: number
  /** How many answers (`n`); 1 when absent. */
  readonly choices?: number
  readonly serviceTier?: string
}

/** An endpoint as data, so that middleware never guesses from the path. */
export interface Route {
  readonly method: Method
  /** Relative to `base_path`, e.g. `/models/{model}/`; `{name+}` is greedy. Answers with and without its last slash. */
  readonly path: string
  /** A `key` route whose chain provides no `principal` stops the start. */
  readonly access: "key" | "public" | "token"
  /** How errors look: the name of a registered dialect. */
  readonly dialect: string
  /**
   * Where the model's name stands: the body's top-level field `model`, a part of a form (read by the route itself, which
   * sets `model` and `plan`), the query's `model`, nowhere (`none`), or what the function finds, in the path say.
   */
  readonly model: "body" | "form" | "query" | "none" | ((call: Call) => string)
  readonly accepts?: {
    readonly types: readonly ModelType[]
    /** Only targets whose vendor speaks this adapter (relays): checked at load. */
    readonly wire?: string
    readonly family?: string
    /** Which models of other families are taken too: those that say `messages: true`, say. */
    readonly offered?: (model: Model) => boolean
    /** Which of all these alone: the one model that serves a path without a model's name, say. */
    readonly only?: (model: Model) => boolean
    /** Whether a vendor's adapter can serve a model here: checked at load for every target of every model taken. */
    readonly servedBy?: (adapter: Adapter, model: Model) => boolean
    /** `X` in the message is replaced by the model's name as asked. */
    readonly otherwise: { readonly code: ErrorCode; readonly message: string }
  }
  /** Not `none`: a chain that provides no `quote` stops the start. */
  readonly charge: "none" | "usage" | "acceptance"
  /** A call of a charging route that costs nothing (counting tokens, by the method in its path): no hold, no bill. */
  readonly free?: (call: Call) => boolean
  /** The rate-limit bucket, by its name among the options of `rate-limit`; `none` is not limited. */
  readonly limit: string
  /** What stands on ledger and usage rows in place of the model's type: routes without a model name their own. */
  readonly kind?: string
  readonly upgrade?: true
  /** The body is taken as it is: never scanned, parsed or checked. */
  readonly raw?: true
  /** What is sold here, when no catalog entry says it: one flat offer with its vendor and price. */
  readonly fixed?: Model
  /** Checked by ajv; a failure is the 422 body of the specification. */
  readonly schema?: JsonSchema
  /** The same for the query string (all values are strings). */
  readonly querySchema?: JsonSchema
  /** Top-level body fields that the route reads beside those that are looked for in every body (`core/http/body.ts`); a repeated one is 400. */
  readonly reads?: readonly string[]
  /** Keys looked for at any depth of the body (foreign ids). */
  readonly finds?: readonly string[]
  /** How content parts are known in this route's bodies, for the estimate of a hold. */
  readonly parts?: PartWords
  demand?(body: Body, call: Call): Demand
  /**
   * Quantities that a request itself tells, for lines of the card on buckets of which the vendor reports nothing. `input`
   * stands in for the estimate.
   */
  readonly counts?: { readonly [B in Bucket]?: (body: Body) => number }
  handle(call: Call): Promise<Outcome>
}

// ---- calls ----

/** What stands in a request body, read from its bytes without rebuilding it. */
export interface BodyScan {
  /**
   * Text in string values, in UTF-8 bytes as written; base64 and data URLs are left out. So are keys and numbers, of which
   * a usual request has few; what is more of them counts.
   */
  readonly textBytes: number
  readonly images: number
  readonly files: number
  /** How often each key of `route.finds` occurs with a non-null value. */
  readonly found: ReadonlyMap<string, number>
  /** Values at any depth, the root too, as they are written: those of a repeated key all count. */
  readonly values: number
}

/** The whole request body, in one buffer. Never changed by anyone. */
export interface Body {
  readonly bytes: Buffer
  /** A top-level field that the route reads, parsed; `undefined` when absent. */
  field(name: string): unknown
  readonly scan: BodyScan
  /** The whole body parsed, once. */
  json(): Record<string, unknown>
}

/** Facts of a call: typed, set once, extended by declaration merging. */
export interface Facts {
  /** Who calls. */
  principal: Principal
  /** The model asked for. */
  model: Resolved
  /** Ordered candidates, the best first. */
  plan: readonly Target[]
  /** Names what vendors' prompt caches would recognise: calls of one conversation meet the same target and secret. */
  conversation: string
  /** What the call may cost. */
  quote: Quote
  /** The most that the body of this call may have, in bytes. */
  bodyMaxBytes: number
}

export interface Principal extends MemberRef {
  /** The public id of the key (`key_...`), never the key itself. */
  readonly key: string
  readonly identity: Identity
}

export interface Resolved {
  /** The name as the client wrote it. */
  readonly asked: string
  readonly model: Model
}

export interface Quote {
  /** The most that the call may cost, in micros: what a hold asks for. */
  readonly micros: number
  /** What must be available for the call to begin, in micros; less is `credits_exhausted` (402). */
  readonly least: number
  readonly card: PriceCard
  readonly parameters: Readonly<Record<string, unknown>>
  /** The estimated input, and what was counted: billed when output was seen and the vendor reported nothing. */
  readonly estimated: Usage
  /** What the request tells of the buckets that the card prices: billed where the vendor reports nothing of them. */
  readonly counted: Usage
}

/** What a call consumed, at its one moment of billing. */
export interface Bill {
  readonly usage: Usage
  readonly source: UsageSource
  readonly serviceTier?: string
  /** The vendor did not report all that it used; the alarm of that was raised. */
  readonly missing?: true
}

export interface Billing {
  /** Resolves when the charge is durable, or when the gateway gave up waiting (it goes on in the background). */
  settle(bill: Bill): Promise<Settled>
  release(): Promise<void>
}

export interface Settled {
  readonly micros: number
  /** False: the store was not reachable in time; the charge is retried until it is durable. */
  readonly durable: boolean
}

/** One try at one target. */
export interface Attempt {
  readonly vendor: string
  /** The secret's public name. */
  readonly secret: string
  /** HTTP status, or 0 when none came. */
  readonly status: number
  readonly ms: number
  readonly error?: ErrorCode
}

declare const made: unique symbol

/** How a call ended. Only `next()`, `exchange` and `reply` can make one: forgetting to return it does not compile. */
export interface Outcome {
  readonly [made]: true
  readonly end: "delivered" | "refused" | "abandoned" | "broken"
  readonly status: number
  readonly target?: Target
  readonly attempts: readonly Attempt[]
  readonly usage?: Usage
  readonly source: UsageSource
  readonly billedMicros?: number
  /** The client left and the vendor is read on: what the call comes to, when that has ended. Never rejects. */
  readonly later?: Promise<Billed>
  readonly bytesOut: number
  readonly firstByteMs?: number
  /** Time spent waiting for the vendor. */
  readonly upstreamMs: number
  readonly streamed: boolean
}

/** What one call came to: nothing, when `source` is `none`. */
export interface Billed {
  readonly usage?: Usage
  readonly source: UsageSource
  readonly micros?: number
}

/** A read-only copy of the upstream's bytes, before any translation. */
export interface Watcher {
  head?(status: number, fields: Readonly<Record<string, string | undefined>>): void
  data?(chunk: Buffer): void
  end?(): void
}

interface DraftBase {
  /** A key of the adapter's `apis`: how the answer is metered and how it fails. */
  readonly api: string
  /** Below the vendor's origin, query not included. */
  readonly path: string
  /** Asks for the whole answer or for a stream: decides timeouts and framing. */
  readonly streamed: boolean
  /** POST unless said otherwise. */
  readonly method?: Method
  readonly headers?: Readonly<Record<string, string>>
  /** Use exactly this secret (its public name): follow-ups of stored responses. */
  readonly secret?: string
  /** Called once with the vendor's id of what it stored, before the head of the answer is sent. */
  readonly seen?: (id: string, attempt: Attempt) => Promise<void>
  /** Called for a client fault (400): a changed draft to retry with, or nothing. At most once per call. */
  readonly retry?: (fault: { readonly message: string; readonly param?: string }) => Draft | undefined
}

/** Their bytes, untouched; only the top-level `model` value is spliced where the vendor's name differs. */
export interface RelayDraft extends DraftBase {
  readonly verb: "relay"
  /** Extra query fields towards the vendor; the client's own pass by the adapter's allow-list. */
  readonly query?: Readonly<Record<string, string>>
  /** False: the model stands in the path, the body is never spliced. */
  readonly splice?: boolean
}

/** Our request, translated stream back. */
export interface StreamDraft extends DraftBase {
  readonly verb: "stream"
  readonly body: string | Buffer
  /** Returns the bytes for the client ("" = nothing). A throw ends the stream with the dialect's error. */
  push(event: StreamEvent): string | Buffer
  end(): string
  /** In place of the bytes of `end()`, and after it: the usage was counted, for the vendor told none, or not all of it. */
  counted?(usage: Usage): string
  /** Sent while the vendor is silent, so that nobody between it and the client takes the stream for dead. */
  readonly ping?: string
}

/** Our request, whole reply in memory. */
export interface SendDraft extends DraftBase {
  readonly verb: "send"
  readonly body: string | Buffer
  answer(body: Buffer): { readonly body: string | Buffer; readonly headers?: Readonly<Record<string, string>> }
}

export type Draft = RelayDraft | StreamDraft | SendDraft

export interface Call {
  /** `x-request-id` of the answer. */
  readonly id: string
  readonly route: Route
  readonly method: string
  /** The path's `{name}` parts, decoded; those of `{name+}` with their slashes. */
  readonly params: Readonly<Record<string, string>>
  /** As the client wrote it, `base_path` and query not included. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The client is gone. Never reaches the upstream. */
  readonly left: AbortSignal
  /** Deadline, drain limit or shutdown: cancels the upstream. */
  readonly stop: AbortSignal
  /** Milliseconds of the host's clock. */
  readonly startedAt: number
  /** What was tried at vendors so far, and failed. */
  readonly attempts: readonly Attempt[]
  /** A fact that the step `needs`. Throws when nobody has set it. */
  get<K extends keyof Facts>(fact: K): Facts[K]
  /** The same for what may be absent on some routes. */
  find<K extends keyof Facts>(fact: K): Facts[K] | undefined
  /** Throws when the fact is set already. Returns the value. */
  set<K extends keyof Facts>(fact: K, value: Facts[K]): Facts[K]
  /** Read once, within the byte budget; checked as JSON when the route has a schema or reads fields. */
  body(): Promise<Body>
  /** A field of the answer's head. Throws where no head can carry it. */
  header(name: string, value: string): void
  /** Answers without any upstream. An object is written as JSON. */
  reply(status: number, body: string | Buffer | object, headers?: Readonly<Record<string, string>>): Promise<Outcome>
  /** Shows the upstream's bytes to a watcher. Before `exchange`; one that throws fails its own call. */
  watch(watcher: Watcher): void
  /**
   * Says what is to be done when the call is over: exactly one of the two is called, once; before the head of a whole
   * answer, after the last byte of a stream. One step of a chain may bill; a second throws.
   */
  onBill(billing: Billing): void
  /**
   * Calls the vendors of `plan`, the best first, until one answers, and sends the answer to the client.
   *
   * @param prepare the request for one target; asked again for each target that is tried. What it throws ends the call;
   *   a client's error (400, say) for a fallback only takes that one out
   * @returns how the call ended, when its last byte is out; to be returned by the handler
   * @throws GatewayError when nobody answered (`upstream_...`, 400 to 502), the client left (`client_left`) or the
   *   gateway stops (`draining`). A relay passes the vendor's own errors on instead, as `refused`
   */
  exchange(prepare: (target: Target) => Draft | Promise<Draft>): Promise<Outcome>
  /** Joins the client's WebSocket with the vendor's (upgrade routes); settles when it is closed. */
  tunnel(target: Target, path: string): Promise<Outcome>
}
