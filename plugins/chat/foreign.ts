/** Ids of things that lie in the vendor's account: no route of the gateway stores any, so they are somebody else's. */

import {
  isFilled,
  isObject,
  isSet,
  isUploadUrl,
  type JsonObject,
  list,
  objectsIn,
  record,
  type StoredIds,
} from "../../core/index.ts"

const ids = ["file_id", "file_ids", "vector_store_ids"]
const addresses = ["image_url", "video_url", "file_url", "document_url"]

/** `audio`: an assistant's turn may name the sound of an earlier answer. */
const suspects: readonly string[] = [...ids, ...addresses, "audio"]

/** The client's own data: schemas, values, and what earlier answers said about their sources. */
const skip: ReadonlySet<string> = new Set(["parameters", "schema", "metadata", "arguments", "annotations"])

/** The name of the first field that points into the vendor's account, if there is one. */
const foreignField = (request: JsonObject): string | undefined => {
  for (const object of objectsIn(request, skip)) {
    const field = ids.find(key => isFilled(object[key])) ?? addresses.find(key => isUpload(object[key]))
    if (field !== undefined) return field
  }
  return list(request.messages).some(hasSound) ? "audio.id" : undefined
}

const isUpload = (value: unknown): boolean => isUploadUrl(isObject(value) ? value.url : value)

const hasSound = (message: unknown): boolean => isSet(record(record(message).audio).id)

/** What the route refuses. */
export const storedIds: StoredIds = { suspects, field: foreignField }
