/** A walk over parsed JSON. */

/** A JSON object as it was parsed. */
export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Every object in a parsed JSON value, outermost first.
 *
 * @param skip keys whose values are the client's own data (schemas, arguments): not looked into
 */
export function* objectsIn(value: unknown, skip: ReadonlySet<string>): Generator<JsonObject> {
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (isObject(next)) yield next
    for (const inner of innerOf(next, skip).reverse()) open.push(inner)
  }
}

const innerOf = (value: unknown, skip: ReadonlySet<string>): unknown[] => {
  if (Array.isArray(value)) return value.filter(isContainer)
  if (!isObject(value)) return []
  return Object.keys(value).flatMap(key => (isContainer(value[key]) && !skip.has(key) ? [value[key]] : []))
}

const isContainer = (value: unknown): boolean => typeof value === "object" && value !== null
