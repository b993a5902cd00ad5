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

/** How many values there are at any depth, the root too. */
export const valuesIn = (root: unknown): number => {
  let values = 1
  const open: unknown[] = [root]
  while (open.length > 0) {
    for (const inner of Object.values(open.pop() as object)) {
      values += 1
      if (isContainer(inner)) open.push(inner)
    }
  }
  return values
}

const innerOf = (value: unknown, skip: ReadonlySet<string>): unknown[] => {
  if (Array.isArray(value)) return value.filter(isContainer)
  if (!isObject(value)) return []
  return Object.keys(value).flatMap(key => (isContainer(value[key]) && !skip.has(key) ? [value[key]] : []))
}

const isContainer = (value: unknown): boolean => typeof value === "object" && value !== null
