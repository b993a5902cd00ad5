/** The contract of a vendor adapter: pure functions over plain data. No clock, no socket, no state between calls. */

import type { ErrorCode, GatewayError } from "./errors.ts"
import type { JsonSchema, Model, Rules, Secret, Target, Usage, Vendor } from "./offer.ts"

/** One event of a stream: an SSE event, or one element of a streamed JSON array (then without `type`). */
export interface StreamEvent {
  readonly type?: string
  /** The joined `data:` lines. Only valid during the call that hands it over: copy what you keep. */
  readonly data: Buffer
}

/** How a streamed answer is cut into events. */
export type Framing = "sse" | "json-array"

/** What one answer consumed, as its vendor reports it. */
export interface UsageReport {
  /** Absent: the vendor reported nothing (so far). */
  readonly usage?: Usage
  /** UTF-8 bytes of output text seen, tool arguments and reasoning included: what is counted when usage never comes. */
  readonly outputBytes: number
  /** What was delivered is no text (vectors, scores): without reported usage only the input is billed as estimated. */
  readonly wordless?: true
  /** The usage was reported before the end, which may have brought more output. */
  readonly provisional?: true
  readonly serviceTier?: string
  /** The vendor's own id of what it stored (Responses), as soon as it is known. */
  readonly id?: string
}

/** Meters one answer. Sees the vendor's bytes before any translation; fed whole or event by event. */
export interface UsageReader {
  whole(body: Buffer): void
  event(event: StreamEvent): void
  report(): UsageReport
  /** Surprises to count under `tollgate_vendor_surprises_total`: `unknown_event`, `bad_json`, `late_usage` ... */
  readonly surprises?: readonly string[]
}

/**
 * What a vendor's error means.
 * `account`: the fault of our account: the client gets 502 with nothing of the vendor's text, the secret is benched.
 */
export type FaultKind =
  | "account"
  | "invalid"
  | "not_found"
  | "too_large"
  | "content_policy"
  | "rate_limited"
  | "overloaded"
  | "server"
  | "timeout"

export interface Fault {
  readonly kind: FaultKind
  /** The status that the vendor documents for it; of the HTTP answer, or of the error event's type. */
  readonly status: number
  /** The vendor's own text, for client faults only; cleaned of account data. */
  readonly message: string
  readonly param?: string
  readonly reason?: string
  readonly retryAfterMs?: number
}

/** What the first events of a stream tell: an error before any content is an ordinary HTTP error. */
export type EventSign = { readonly sign: "content" | "neutral" } | { readonly sign: "fault"; readonly fault: Fault }

/** One API of a vendor (chat, responses, messages, generate ...): how it is metered and how it fails. */
export interface Api {
  /** A reader for one answer. */
  usage(): UsageReader
  /** Asked for the first events until one is content or a fault, then for those that hold the word `error`. Never throws. */
  sign(event: StreamEvent): EventSign
  /** False: metered by nothing (token counting, lists); no hold, no usage expected. */
  readonly metered?: false
}

/** Content parts that count as a flat number of tokens: by the value of a `type` key, or by a key's name. */
export interface PartWords {
  readonly types?: Readonly<Record<string, "image" | "file">>
  readonly keys?: Readonly<Record<string, "image" | "file">>
}

/** Names in lower case. What is not listed never crosses. A trailing `*` matches a prefix. */
export interface AllowedFields {
  readonly toVendor: readonly string[]
  readonly toClient: readonly string[]
  readonly query: readonly string[]
}

/** How errors look on a route. */
export interface Dialect {
  readonly name: string
  /** The body of an error answer: an object to be written as JSON (or text, for `plain` text answers). */
  render(error: GatewayError, requestId: string): Record<string, unknown>
  /** The bytes that end a stream which failed after its head was sent. */
  streamError(error: GatewayError, requestId: string): string
  /** Header fields that may carry the key beside `authorization` and `x-api-key`. */
  readonly keyHeaders?: readonly string[]
}

export interface AdapterContext {
  readonly model: Model
  readonly target: Target
  readonly vendor: Vendor
  readonly rules: Rules
}

/** The request of a spoke, ready to be sent. `path` is below the vendor's origin. */
export interface SpokeRequest {
  readonly path: string
  readonly body: Record<string, unknown>
  readonly headers?: Readonly<Record<string, string>>
  /** Parts of the answer's translation that only the request knows (renamed tools ...). */
  readonly memo?: unknown
}

/** An OpenAI chat completion request: the hub of all translations. Checked by the route's schema. */
export interface ChatRequest {
  readonly model: string
  readonly messages: readonly Record<string, unknown>[]
  readonly stream?: boolean
  readonly [field: string]: unknown
}

/** An OpenAI chat completion, or one of its chunks, as plain JSON. */
export type ChatAnswer = Record<string, unknown>

/** Turns a vendor's stream into chunks of the hub. `push` and `end` return chunks in order; a throw ends the stream. */
export interface ChatStream {
  push(event: StreamEvent): readonly ChatAnswer[]
  /** The upstream ended. Throws when it was cut. */
  end(): readonly ChatAnswer[]
}

/** What a translation needs to know of its call. */
export interface ChatContext extends AdapterContext {
  /** `chatcmpl-...`, stable over the whole answer. */
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly includeUsage: boolean
  /** Thought signatures by tool-call id, found in the store. */
  readonly signatures?: ReadonlyMap<string, string>
  /** Called with each signature that the answer carries, to be kept. */
  readonly keep?: (toolCallId: string, signature: string) => void
}

/** The wire of a vendor seen from the hub. */
export interface ChatSpoke {
  readonly api: string
  /** An effort that a model does not offer becomes one that it does. Absent: the vendor gets the word as it is. */
  readonly mapsEfforts?: true
  /** Throws `invalid_request` (400), naming the field, for what this wire or this model cannot express. */
  request(request: ChatRequest, context: ChatContext): SpokeRequest
  /**
   * The hub's answer, with its `usage`. Throws what the client shall read: the vendor's fault inside a 200, or
   * `upstream_unreadable` (502).
   *
   * @param memo what `request` gave for this call
   */
  whole(body: Buffer, context: ChatContext, memo: unknown): ChatAnswer
  /** Absent: the vendor's chunks already are the hub's; only the gateway's own usage chunk is taken out. */
  stream?(context: ChatContext, memo: unknown): ChatStream
}

export interface EmbeddingsSpoke {
  readonly api: string
  /** The request's fields beyond the hub's own that this wire takes; absent: all pass. Others are refused by name. */
  readonly takes?: readonly string[]
  request(request: Record<string, unknown>, context: AdapterContext): SpokeRequest
  /** The OpenAI embeddings answer. */
  whole(body: Buffer, request: Record<string, unknown>, context: AdapterContext): Record<string, unknown>
}

/** A rerank request in the hub's words: texts only, limits within the list. */
export interface RerankRequest {
  readonly query: string
  readonly documents: readonly string[]
  readonly top_n?: number
  /** What the vendor takes besides, as the client wrote it. */
  readonly [field: string]: unknown
}

/** `index` points into the request's documents. */
export interface RerankResult {
  readonly index: number
  readonly relevance_score: number
}

export interface RerankAnswer {
  readonly id?: string
  /** In any order. */
  readonly results: readonly RerankResult[]
  readonly totalTokens?: number
  readonly searchUnits?: number
}

export interface RerankSpoke {
  readonly api: string
  request(request: RerankRequest, context: AdapterContext): SpokeRequest
  whole(body: Buffer, context: AdapterContext): RerankAnswer
}

/** Judges texts: in and out the OpenAI moderation shape. */
export interface ModerationSpoke {
  readonly api: string
  request(request: Record<string, unknown>, context: AdapterContext): SpokeRequest
  whole(body: Buffer, context: AdapterContext): Record<string, unknown>
}

/** A vendor that answers decisions itself: both forms are relayed as they are. */
export interface DecisionsRelay {
  readonly api: string
  /** Below the vendor's origin, by the form of the request's `questions`. */
  path(form: "map" | "list", vendor: Vendor): string
}

export interface Adapter {
  readonly name: string
  readonly dialect: Dialect
  readonly fields: AllowedFields
  /** What `vendors.<name>.options` may hold; without a schema, nothing. Checked at load, no defaults are filled in. */
  readonly options?: JsonSchema
  /** What a vendor's `options` allow beside them. */
  readonly moreFields?: (vendor: Vendor) => Partial<AllowedFields>
  /** Header fields that authorise a call. Added last, for the configured origin only. */
  authorise(secret: Secret, vendor: Vendor): Readonly<Record<string, string>>
  /** By the names that drafts and spokes call them by. */
  readonly apis: Readonly<Record<string, Api>>
  /** What an error answer means. Never throws, whatever the body is. */
  fault(status: number, body: Buffer, headers: Readonly<Record<string, string | undefined>>): Fault
  /** Header fields added when the client sent none (a version that the vendor demands). */
  readonly defaults?: Readonly<Record<string, string>>
  readonly chat?: ChatSpoke
  readonly embeddings?: EmbeddingsSpoke
  readonly rerank?: RerankSpoke
  readonly moderation?: ModerationSpoke
  readonly decisions?: DecisionsRelay
}

/** The gateway's error for a vendor's fault, on translated routes. */
export const faultCodes = {
  account: "upstream_account",
  invalid: "upstream_invalid",
  not_found: "upstream_invalid",
  too_large: "upstream_invalid",
  content_policy: "content_policy_violation",
  rate_limited: "upstream_rate_limited",
  overloaded: "upstream_overloaded",
  server: "upstream_unavailable",
  timeout: "upstream_timeout",
} as const satisfies Record<FaultKind, ErrorCode>
