/** Ids of things that lie in the vendor's account: no route of the gateway stores any, so they are somebody else's. */

import {
  isObject,
  isSet,
  isUploadUrl,
  type JsonObject,
  list,
  objectsIn,
  record,
  type StoredIds,
} from "../../core/index.ts"

const suspects: readonly string[] = ["file_id", "container", "previous_message_id"]

/** The client's own data: arguments and schemas of tools. */
export const clientData: ReadonlySet<string> = new Set(["input", "input_schema", "schema", "metadata"])

/** The name of the first field that points into the vendor's account, if there is one. */
const foreignField = (request: JsonObject): string | undefined => {
  if (isForeignContainer(request.container)) return "container"
  for (const field of ["thread", "diagnostics"]) {
    if (isSet(record(request[field]).previous_message_id)) return field
  }
  for (const object of objectsIn(request, clientData)) {
    // Results of earlier turns tell file ids too; only these two forms make the vendor open a file.
    const opens = object.type === "file" || object.type === "container_upload"
    if (opens && isSet(object.file_id)) return "file_id"
  }
  return undefined
}

/** Skills that the vendor itself offers belong to everyone. */
const isForeignContainer = (container: unknown): boolean => {
  if (!isObject(container)) return isSet(container)
  return isSet(container.id) || list(container.skills).some(skill => record(skill).type === "custom")
}

/** What the route refuses. A client whose thread is not found sends the whole conversation instead. */
export const storedIds: StoredIds = { suspects, field: foreignField, reasons: { thread: "thread_not_found" } }

const uploadedImage = (request: JsonObject): string | undefined => {
  const isUploaded = ({ type, source }: JsonObject) => type === "image" && isUploadUrl(record(source).url)
  return [...objectsIn(request, clientData)].some(isUploaded) ? "source.url" : undefined
}

/** What is refused of a request for a model of another family: ids mean nothing to its vendor, addresses may. */
export const uploads: StoredIds = { suspects: ["url"], field: uploadedImage }
