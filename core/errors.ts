/** The one error of the gateway and the table that gives each code its status, its source and its metric label. */

/** Whose fault it is: decides who is told, who is charged and what is retried. */
export type ErrorSource = "client" | "gateway" | "upstream"

/** The closed set of the label `error_type` of `tollgate_errors_total`. */
export type ErrorLabel =
  | "client_invalid"
  | "client_auth"
  | "client_left"
  | "client_too_large"
  | "policy_rate_limited"
  | "policy_reservation_limited"
  | "policy_no_credit"
  | "policy_model_disabled"
  | "vendor_4xx"
  | "vendor_rate_limited"
  | "vendor_overloaded"
  | "vendor_5xx"
  | "vendor_timeout"
  | "vendor_connect"
  | "vendor_content_policy"
  | "gateway_dependency"
  | "gateway_shed"
  | "gateway_internal"
  | "other"

export interface ErrorKind {
  readonly status: number
  readonly source: ErrorSource
  readonly label: ErrorLabel
  /** The `type` of the OpenAI error shape; a dialect may choose its own words by status. */
  readonly type: string
}

const kind = (status: number, source: ErrorSource, label: ErrorLabel, type: string): ErrorKind => ({
  status,
  source,
  label,
  type,
})

/** Every error that the gateway makes. A plugin names a code; nobody writes a status by hand. */
export const errorTable = {
  invalid_request: kind(400, "client", "client_invalid", "invalid_request_error"),
  too_complex: kind(400, "client", "client_invalid", "invalid_request_error"),
  content_policy_violation: kind(400, "upstream", "vendor_content_policy", "content_policy_violation"),
  model_mismatch: kind(400, "client", "client_invalid", "invalid_request_error"),
  model_not_found_here: kind(400, "client", "client_invalid", "invalid_request_error"),
  unauthorized: kind(401, "client", "client_auth", "authentication_error"),
  credits_exhausted: kind(402, "client", "policy_no_credit", "insufficient_credits"),
  gateway_disabled: kind(403, "client", "policy_model_disabled", "permission_error"),
  model_not_enabled: kind(403, "client", "policy_model_disabled", "permission_error"),
  model_not_offered: kind(403, "client", "policy_model_disabled", "permission_error"),
  forbidden: kind(403, "client", "client_auth", "permission_error"),
  blocked: kind(403, "client", "client_invalid", "permission_error"),
  not_found: kind(404, "client", "client_invalid", "not_found_error"),
  model_not_found: kind(404, "client", "client_invalid", "invalid_request_error"),
  method_not_allowed: kind(405, "client", "client_invalid", "invalid_request_error"),
  request_timeout: kind(408, "client", "client_invalid", "invalid_request_error"),
  body_too_large: kind(413, "client", "client_too_large", "invalid_request_error"),
  unsupported_media_type: kind(415, "client", "client_invalid", "invalid_request_error"),
  expectation_failed: kind(417, "client", "client_invalid", "invalid_request_error"),
  validation_failed: kind(422, "client", "client_invalid", "invalid_request_error"),
  upgrade_required: kind(426, "client", "client_invalid", "invalid_request_error"),
  rate_limited: kind(429, "client", "policy_rate_limited", "rate_limit_error"),
  reservations_exceeded: kind(429, "client", "policy_reservation_limited", "rate_limit_error"),
  fields_too_large: kind(431, "client", "client_too_large", "invalid_request_error"),
  client_left: kind(499, "client", "client_left", "invalid_request_error"),
  internal: kind(500, "gateway", "gateway_internal", "server_error"),
  plugin_failed: kind(500, "gateway", "gateway_internal", "server_error"),
  price_missing: kind(500, "gateway", "gateway_internal", "server_error"),
  not_implemented: kind(501, "client", "client_invalid", "invalid_request_error"),
  maintenance: kind(503, "gateway", "gateway_shed", "service_unavailable_error"),
  draining: kind(503, "gateway", "gateway_shed", "service_unavailable_error"),
  shed: kind(503, "gateway", "gateway_shed", "service_unavailable_error"),
  store_unavailable: kind(503, "gateway", "gateway_dependency", "service_unavailable_error"),
  http_version: kind(505, "client", "client_invalid", "invalid_request_error"),
  upstream_invalid: kind(400, "upstream", "vendor_4xx", "invalid_request_error"),
  upstream_rate_limited: kind(429, "upstream", "vendor_rate_limited", "rate_limit_error"),
  upstream_failed: kind(500, "upstream", "vendor_5xx", "server_error"),
  upstream_unavailable: kind(502, "upstream", "vendor_5xx", "server_error"),
  upstream_unreadable: kind(502, "upstream", "vendor_5xx", "server_error"),
  upstream_overloaded: kind(502, "upstream", "vendor_overloaded", "server_error"),
  upstream_timeout: kind(502, "upstream", "vendor_timeout", "server_error"),
  upstream_unreachable: kind(502, "upstream", "vendor_connect", "server_error"),
  upstream_account: kind(502, "upstream", "vendor_4xx", "server_error"),
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof errorTable

export interface ErrorOptions {
  /** Header fields of the error answer, such as `retry-after` in whole seconds. */
  readonly headers?: Readonly<Record<string, string>>
  /** What stands under `detail` when it is not the message itself. */
  readonly detail?: unknown
  /** The request field at fault: `error.param` of the OpenAI shape. */
  readonly param?: string
  /** `error.code` of the OpenAI shape where the vendors' SDKs know a word for it. */
  readonly reason?: string
  /** The answer is the message itself, as plain text, in every dialect. */
  readonly text?: true
  /** Whose code failed: the plugin that `plugin_failed` is counted and logged for. */
  readonly plugin?: string
  /** For the log only. */
  readonly cause?: unknown
}

const brand = Symbol.for("tollgate.error")

/**
 * An error with a public message. `message` never holds a key, a vendor's URL or a stack; `cause` goes to the log.
 * Known by `isGatewayError`, never by `instanceof`: a plugin may load its own copy of this file.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly headers: Readonly<Record<string, string>>
  readonly detail: unknown
  readonly param: string | null
  readonly reason: string | null
  readonly isText: boolean
  readonly plugin: string | undefined

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = "GatewayError"
    this.code = code
    this.headers = options.headers ?? {}
    this.detail = options.detail ?? message
    this.param = options.param ?? null
    this.reason = options.reason ?? null
    this.isText = options.text === true
    this.plugin = options.plugin
    Object.defineProperty(this, brand, { value: true })
  }

  get kind(): ErrorKind {
    return errorTable[this.code]
  }
}

/** The field of a head that says when to try again: whole seconds, rounded up so that who waits this long passes, at least 1. */
export const retryAfter = (ms: number): Readonly<Record<"retry-after", string>> => ({
  "retry-after": String(Math.max(1, Math.ceil(ms / 1000))),
})

export const isGatewayError = (error: unknown): error is GatewayError =>
  typeof error === "object" && error !== null && (error as { [brand]?: unknown })[brand] === true

/** The error as the gateway speaks of it: an unknown exception becomes `internal` with a text that tells nothing. */
export const asGatewayError = (error: unknown): GatewayError =>
  isGatewayError(error) ? error : new GatewayError("internal", "Internal error", { cause: error })
