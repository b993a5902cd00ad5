/** Chat's strict schemas demand more than this wire's: every object is closed, and all of its properties are required. */

import { isObject, list, objectsIn } from "../../../core/index.ts"

/** Values of these words are the client's data, not schemas. */
const data: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"])

export const isStrict = (schema: unknown): boolean =>
  isObject(schema) &&
  schema.type === "object" &&
  [...objectsIn(schema, data)].every(({ type, properties, additionalProperties, required }) => {
    if (type !== "object") return true
    const names = isObject(properties) ? Object.keys(properties) : []
    return additionalProperties === false && names.every(name => list(required).includes(name))
  })
