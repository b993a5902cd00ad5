/** The contract between the sandbox's server and its wires: one wire is one endpoint of one vendor's protocol. */

import type { IncomingHttpHeaders } from "node:http"
import type { JsonObject } from "../../core/index.ts"

/** A request as a wire sees it: authenticated, its body parsed. */
export interface Ask {
  /** Named groups of the wire's path. */
  readonly path: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: JsonObject
  /** Unix seconds. */
  readonly now: number
  /** A new id: the prefix and 24 letters and digits. The same seed gives the same ids. */
  id(prefix: string): string
  /** Whether this text was asked about before: a prompt cache without an end. */
  seen(text: string): boolean
}

/** Whole JSON, or the events of a stream, each one the bytes of one chunk. */
export type Reply =
  | { readonly whole: unknown }
  | { readonly stream: Iterable<string>; readonly type: "text/event-stream" | "application/json" }

export type RefusalKind = "unauthenticated" | "bad_json" | "invalid" | "not_found" | "rate_limited" | "server"

/** What a vendor says no to. Its manner turns it into status and body. */
export class Refusal extends Error {
  readonly kind: RefusalKind
  readonly param: string | null
  readonly code: string | null

  constructor(kind: RefusalKind, message: string, { param, code }: { param?: string; code?: string } = {}) {
    super(message)
    this.kind = kind
    this.param = param ?? null
    this.code = code ?? null
  }
}

/** What all endpoints of a vendor have in common. */
export interface Manner {
  /** The credential of a request, wherever this vendor takes it. */
  key(headers: IncomingHttpHeaders, query: URLSearchParams): string | undefined
  error(refusal: Refusal, requestId: string): { readonly status: number; readonly body: unknown }
  /** Header fields of every answer. */
  fields(requestId: string): Readonly<Record<string, string>>
}

export interface Wire {
  readonly method: "GET" | "POST"
  /** Matched against the end of the path, so that hosts with a prefix of their own are served too. */
  readonly path: RegExp
  /** Where vendors share a path: the models of this one. */
  readonly model?: RegExp
  readonly manner: Manner
  answer(ask: Ask): Reply
}

/** The model that a body names. @throws Refusal as the vendors do: absent, or unknown (`...does-not-exist...`) */
export const modelOf = (name: unknown): string => {
  if (typeof name !== "string" || name === "") throw new Refusal("invalid", "model: field required", { param: "model" })
  if (name.includes("does-not-exist")) {
    throw new Refusal("not_found", `The model ${name} was not found`, { param: "model", code: "model_not_found" })
  }
  return name
}

/** @throws Refusal when a limit is no positive whole number */
export const limitOf = (value: unknown, param: string): number => {
  if (value === undefined || value === null) return Number.POSITIVE_INFINITY
  if (typeof value === "number" && Number.isInteger(value) && value > 0) return value
  throw new Refusal("invalid", `${param}: expected a positive integer`, { param })
}
