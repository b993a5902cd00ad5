/** What becomes of the top-level fields of a chat request on a wire that has not all of them. */

import { type ChatRequest, isSet, refuse } from "../../../core/index.ts"

export interface KnownFields {
  /** Translated, each by its own piece. */
  readonly taken: ReadonlySet<string>
  /** Hints about storing, caching, speed and style: an answer without them still is the answer to the request. */
  readonly hints: ReadonlySet<string>
  /** Fields without a counterpart, and their values that ask for what happens anyway. */
  readonly neutral?: Readonly<Record<string, (value: unknown) => boolean>>
}

const isEmpty = (value: unknown): boolean => typeof value === "object" && Object.keys(value as object).length === 0

/** No translated wire has these at all. */
const neverMore: NonNullable<KnownFields["neutral"]> = {
  logit_bias: isEmpty,
  functions: isEmpty,
  modalities: value => Array.isArray(value) && value.every(one => one === "text"),
}

/** @throws GatewayError `invalid_request` (400) naming the first field that the wire cannot express */
export const checkFields = (request: ChatRequest, { taken, hints, neutral }: KnownFields): void => {
  const harmless = { ...neverMore, ...neutral }
  for (const [name, value] of Object.entries(request)) {
    if (!isSet(value) || taken.has(name) || hints.has(name)) continue
    if (Object.hasOwn(harmless, name) && harmless[name]?.(value)) continue
    throw refuse(name, `Model '${request.model}' does not support '${name}'`)
  }
}
