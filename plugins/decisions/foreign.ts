/** Ids of things that lie in the vendor's account, in the parts of an input: no route of the gateway stores any. */

import { isSet, isUploadUrl, type JsonObject, list, record, type StoredIds } from "../../core/index.ts"

/** The rest of an input is the client's own data, whatever its keys are called. */
const foreignField = ({ state, input }: JsonObject): string | undefined => {
  for (const message of list(state ?? input)) {
    for (const part of list(record(message).content).map(record)) {
      if (part.type !== "input_image" && part.type !== "input_file") continue
      if (isSet(part.file_id)) return "file_id"
      if (isUploadUrl(part.image_url)) return "image_url"
    }
  }
  return undefined
}

/** What the route refuses. */
export const storedIds: StoredIds = { suspects: ["file_id", "image_url"], field: foreignField }
