/** Reads JSON that others wrote: what is not there, or not of its kind, is absent. */

import { GatewayError, isObject, type JsonObject } from "../../../core/index.ts"

const nothing: JsonObject = Object.freeze({})

export const record = (value: unknown): JsonObject => (isObject(value) ? value : nothing)

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** A text that says something. */
export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

export const isSet = (value: unknown): boolean => value !== undefined && value !== null

/** A 400 that names the field at fault. */
export const refuse = (param: string, message: string): GatewayError =>
  new GatewayError("invalid_request", message, { param })
