/** Reads JSON that others wrote without trusting it: what is not there, or not of its kind, is absent. Never throws. */

import { GatewayError } from "../errors.ts"
import { isObject, type JsonObject } from "./walk.ts"

const nothing: JsonObject = Object.freeze({})
const empty: readonly unknown[] = Object.freeze([])

export const record = (value: unknown): JsonObject => (isObject(value) ? value : nothing)

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : empty)

/** A text that says something. */
export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** A field of value null counts as absent. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null

/** Does a stream's end marker stand where JSON is expected (`[DONE]`)? */
export const isDone = (data: Buffer): boolean => data.length < 16 && data.toString("latin1").trim() === "[DONE]"

/** An event without words, as some vendors send to keep a connection alive. */
export const isBlank = (data: Buffer): boolean => data.length < 16 && data.toString("latin1").trim() === ""

/** A 400 that names the field at fault: known before the call, so it costs nothing. */
export const refuse = (param: string, message: string): GatewayError =>
  new GatewayError("invalid_request", message, { param })
