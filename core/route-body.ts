/** How a route's schemas check what was received. */

import { compileSchema, type Problem } from "./catalog/schema.ts"
import { GatewayError } from "./errors.ts"
import { bodyOf, rawBody, type ScannedBody, scanOptionsOf } from "./http/body.ts"
import type { JsonSchema } from "./offer.ts"
import type { Body, Route } from "./plugin.ts"

/** Below this a body is parsed whole (as fast as a scan); above it only the fields that the schema names are. */
const parsedWholeMax = 64 * 1024

/** Asks for the types of some top-level scalars and nothing else, as relays do: there is no need to parse the whole. */
const isShallow = ({ type, required, properties, ...others }: JsonSchema): boolean => {
  const schemas = (properties ?? {}) as Readonly<Record<string, JsonSchema>>
  const names = (required ?? []) as readonly string[]
  return (
    type === "object" &&
    Object.keys(others).length === 0 &&
    names.every(name => Object.hasOwn(schemas, name)) &&
    Object.values(schemas).every(schema => scalars.has(schema.type))
  )
}
const scalars: ReadonlySet<unknown> = new Set(["string", "boolean", "integer", "number"])

export const readBodyOf = (route: Route): ((bytes: Buffer) => ScannedBody) => {
  if (route.raw === true) return rawBody
  const properties = Object.keys((route.schema?.properties as JsonSchema | undefined) ?? {})
  const wholeMax = route.schema !== undefined && isShallow(route.schema) ? 0 : parsedWholeMax
  const scan = scanOptionsOf({ ...route, reads: [...(route.reads ?? []), ...properties] })
  const check = route.schema === undefined ? undefined : compileSchema(route.schema, "body")
  return bytes => {
    const body = bodyOf(bytes, scan)
    if (check !== undefined) refuseInvalid(check(bytes.length <= wholeMax ? body.json() : fieldsOf(body, properties)))
    return body
  }
}

const fieldsOf = (body: Body, names: readonly string[]): Record<string, unknown> => {
  const out: Record<string, unknown> = Object.create(null)
  for (const name of names) {
    const value = body.field(name)
    if (value !== undefined) out[name] = value
  }
  return out
}

/** @throws GatewayError `validation_failed` (422), in the words of the specification */
const refuseInvalid = (problems: readonly Problem[]): void => {
  const first = problems[0]
  if (first === undefined) return
  const param = first.loc.slice(1).join(".")
  throw new GatewayError("validation_failed", `${param === "" ? first.loc.join(".") : param}: ${first.msg}`, {
    detail: problems,
    ...(param === "" ? {} : { param }),
  })
}

/** The check of a query string, whose values are all strings; `undefined` when the route has no schema for it. */
export const queryCheckOf = ({ querySchema }: Route): ((query: URLSearchParams) => void) | undefined => {
  if (querySchema === undefined) return undefined
  const check = compileSchema(querySchema, "query")
  return query => refuseInvalid(check(Object.fromEntries(query)))
}
