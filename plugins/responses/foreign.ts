/**
 * Ids of things that lie in the vendor's account. No route of the gateway stores any, so whatever a request names
 * belongs to somebody else. (Answers of the Responses API are the exception: `stored.ts`.)
 */

import { isObject, isSet, type JsonObject, list, objectsIn, record, type StoredIds } from "../../core/index.ts"

/** `id`: an item may be named by nothing else. */
const suspects: readonly string[] = [
  "file_id",
  "file_ids",
  "vector_store_ids",
  "container",
  "container_id",
  "prompt",
  "skill_id",
  "id",
]

/** The client's own data: schemas, values, and what earlier answers said about their sources. */
const skip: ReadonlySet<string> = new Set([
  "parameters",
  "schema",
  "output_schema",
  "metadata",
  "variables",
  "annotations",
  "arguments",
  "logprobs",
])

/** The name of the first field that points into the vendor's account, if there is one. */
const foreignField = (request: JsonObject): string | undefined => {
  if (isSet(record(request.prompt).id)) return "prompt.id"
  for (const object of objectsIn(request, skip)) {
    const field = fieldIn(object)
    if (field !== undefined) return field
  }
  return list(request.input)
    .map(itemReference)
    .find(one => one !== undefined)
}

const isFilled = (value: unknown): boolean => isSet(value) && !(Array.isArray(value) && value.length === 0)

const fieldIn = (object: JsonObject): string | undefined => {
  const named = ["file_id", "file_ids", "vector_store_ids", "skill_id"].find(key => isFilled(object[key]))
  if (named !== undefined) return named
  // `{type: "auto"}` asks for a new one; calls of earlier answers only tell where they ran.
  if (typeof object.container === "string") return "container"
  return object.type === "container_reference" ? "container_id" : undefined
}

/** `{id}` or `{type: "item_reference", id}`: an item of an earlier answer, by its id alone. */
const itemReference = (item: unknown): string | undefined => {
  if (!isObject(item) || !isSet(item.id)) return undefined
  const isBare = !isSet(item.type) && !isSet(item.role)
  return item.type === "item_reference" || isBare ? "item_reference" : undefined
}

/** What the route refuses. */
export const storedIds: StoredIds = { suspects, field: foreignField }
