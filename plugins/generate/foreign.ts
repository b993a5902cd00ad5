/** Things that lie in the vendor's account: no route of the gateway stores any, so they are somebody else's. */

import { hostOf, isFilled, isSet, type JsonObject, objectsIn, type StoredIds } from "../../core/index.ts"

/** The API takes both spellings of its names. */
const stored = ["cachedContent", "cached_content", "fileSearchStoreNames", "file_search_store_names"]
const uris = ["fileUri", "file_uri"]

const suspects: readonly string[] = [...stored, ...uris]

/** The client's own data: schemas, arguments and results of functions. */
const skip: ReadonlySet<string> = new Set([
  "args",
  "response",
  "parameters",
  "parametersJsonSchema",
  "parameters_json_schema",
  "responseSchema",
  "response_schema",
  "responseJsonSchema",
  "response_json_schema",
])

/** The name of the first field that points into the vendor's account, if there is one. */
const foreignField = (request: JsonObject): string | undefined => {
  for (const object of objectsIn(request, skip)) {
    const field = stored.find(key => isFilled(object[key])) ?? uris.find(key => isUpload(object[key]))
    if (field !== undefined) return field
  }
  return undefined
}

/** Public pages and videos are the client's to name; `files/...`, buckets and the API's own host are accounts. */
const isUpload = (uri: unknown): boolean => {
  if (!isSet(uri) || uri === "") return false
  const url = typeof uri === "string" ? URL.parse(uri) : null
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return true
  const host = hostOf(url)
  return host.endsWith("googleapis.com") && host !== "storage.googleapis.com"
}

/** What the route refuses. */
export const storedIds: StoredIds = { suspects, field: foreignField }
