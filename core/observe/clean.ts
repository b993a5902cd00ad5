/**
 * What may stand in a log line. Fields named like credentials become `[secret]`, URLs lose their query and user,
 * strings are cut, bytes become their length, and whatever could steer a terminal is written out as text.
 */

import { credentialFields } from "../kit/credentials.ts"

const secretFields: ReadonlySet<string> = new Set([...credentialFields, "proxy-authorization", "cookie", "set-cookie"])
const secret = "[secret]"

const stringMax = 2048
const itemsMax = 64
const depthMax = 6

/** JSON escapes the C0 controls; DEL, C1 and the two line separators would stay raw. */
const rawControls = /[\u007f-\u009f\u2028\u2029]/g
const doubtful = /[?@\u007f-\u009f\u2028\u2029]/
/** A URL with a scheme, or a path at the beginning of the text or after a blank, quote or bracket. */
const query = /((?:\b[a-z][a-z0-9+.-]*:\/\/|(?<![^\s"'`([<=])\/)[^\s?"'`<>]*)\?[^\s"'`<>)\]]*/gi
const userOfUrl = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@?#"]*@/gi

/** Names that need no cleaning, remembered: a log line has the same ones each time. Names of clients come too: bounded. */
const cleanNames = new Set<string>()
const namesMax = 1_000

/** As JSON writes a control: `\u001b`. */
export const written = (control: string): string => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`

/** The beginning of a text that is longer, and how long it was. */
export const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most)}... (${text.length} characters)` : text

export const cleanText = (text: string): string => {
  const short = cut(text, stringMax)
  if (!doubtful.test(short)) return short
  return short.replace(userOfUrl, `$1${secret}@`).replace(query, "$1?[query]").replace(rawControls, written)
}

/** The fields themselves when nothing in them needs cleaning, as in most lines; else a clean copy. */
export const cleanFields = (fields: object): object => {
  if (isClean(fields, 1)) return fields
  return fields instanceof Error ? { error: cleanError(fields, 1) } : cleanObject(fields, 1)
}

/** True only where cleaning would give an equal object back; whatever it does not know is cleaned. */
const isClean = (fields: object, depth: number): boolean => {
  if (Object.getPrototypeOf(fields) !== Object.prototype) return false // errors, lists, bytes and what has a `toJSON`
  let count = 0
  for (const name in fields) {
    count += 1
    if (count > itemsMax || !isCleanName(name) || !isCleanValue((fields as Fields)[name], depth)) return false
  }
  return true
}

const isCleanName = (name: string): boolean => {
  if (cleanNames.has(name)) return true
  if (name === "__proto__" || secretFields.has(name.toLowerCase()) || cleanText(name) !== name) return false
  if (cleanNames.size < namesMax) cleanNames.add(name)
  return true
}

const isCleanValue = (value: unknown, depth: number): boolean => {
  if (typeof value === "string") return value.length <= stringMax && !doubtful.test(value)
  if (typeof value === "object") return value === null || (depth < depthMax && isClean(value, depth + 1))
  return typeof value === "number" || typeof value === "boolean" || value === undefined
}

const cleanValue = (value: unknown, depth: number): unknown => {
  if (typeof value === "string") return cleanText(value)
  if (typeof value === "object") return value === null ? null : cleanNested(value, depth)
  if (typeof value === "bigint") return String(value)
  return typeof value === "function" || typeof value === "symbol" ? undefined : value
}

const cleanNested = (value: object, depth: number): unknown => {
  if (ArrayBuffer.isView(value)) return { bytes: value.byteLength }
  if (depth >= depthMax) return "[deep]"
  if (value instanceof Error) return cleanError(value, depth + 1)
  if (Array.isArray(value)) return value.slice(0, itemsMax).map(item => cleanValue(item, depth + 1))
  if ("toJSON" in value && typeof value.toJSON === "function") return cleanValue(value.toJSON(), depth + 1)
  return cleanObject(value, depth + 1)
}

const cleanObject = (fields: object, depth: number): Record<string, unknown> => {
  const clean: Record<string, unknown> = {}
  let count = 0
  for (const name in fields) {
    if (!Object.hasOwn(fields, name)) continue
    count += 1
    if (count > itemsMax) break
    set(clean, name, secretFields.has(name.toLowerCase()) ? secret : cleanValue((fields as Fields)[name], depth))
  }
  return clean
}

type Fields = Readonly<Record<string, unknown>>

/** An assignment to `__proto__` would set the prototype, and names come from clients too. */
const set = (into: Record<string, unknown>, name: string, value: unknown): void => {
  if (name !== "__proto__") into[cleanText(name)] = value
}

/** The own fields of an error (`code`, `status` ...) beside those that JSON leaves out. */
const cleanError = (error: Error, depth: number): Record<string, unknown> => ({
  ...cleanObject(error, depth),
  type: cleanText(error.name),
  message: cleanText(error.message),
  stack: error.stack === undefined ? undefined : cleanText(error.stack),
  ...(error.cause === undefined ? undefined : { cause: cleanValue(error.cause, depth) }),
})
