/** Images, sound and files of a message. The gateway fetches nothing: a URL is the vendor's to open, or refused. */

import { hostOf, type JsonObject, refuse } from "../../../../core/index.ts"
import { dataUrlOf } from "../../common/data-url.ts"
import { record, text } from "../../common/json.ts"
import type { Part } from "./parts.ts"

export interface MediaContext {
  readonly fileUrls: boolean
  /** Things in our account at the vendor may be named by every client. */
  readonly sharedIds: boolean
}

type Reader = (part: JsonObject, param: string, context: MediaContext) => Part

/** @throws GatewayError (400) for what is neither a data URL nor a public address that the model may open */
export const imagePart: Reader = ({ image_url }, param, context) => {
  const url = typeof image_url === "string" ? image_url : text(record(image_url).url)
  return urlPart(url, `${param}.image_url`, context)
}

export const filePart: Reader = ({ file }, param, context) => {
  const { file_id, file_data } = record(file)
  if (file_id !== undefined && file_id !== null) {
    throw refuse(`${param}.file.file_id`, "'file_id' names something stored at another vendor; send 'file_data'")
  }
  return urlPart(text(file_data), `${param}.file.file_data`, context)
}

const audioTypes: Readonly<Record<string, string>> = {
  wav: "audio/wav",
  mp3: "audio/mp3",
  aiff: "audio/aiff",
  aac: "audio/aac",
  ogg: "audio/ogg",
  flac: "audio/flac",
}

export const audioPart: Reader = ({ input_audio }, param) => {
  const { data, format } = record(input_audio)
  const mimeType = typeof format === "string" && Object.hasOwn(audioTypes, format) ? audioTypes[format] : undefined
  if (mimeType === undefined) {
    throw refuse(`${param}.input_audio.format`, `The format must be one of ${Object.keys(audioTypes).join(", ")}`)
  }
  if (text(data) === undefined) throw refuse(`${param}.input_audio.data`, "Expected sound, coded in base64")
  return { inlineData: { mimeType, data } }
}

const urlPart = (url: string | undefined, param: string, context: MediaContext): Part => {
  if (url !== undefined && /^data:/i.test(url)) return { inlineData: inlineData(url, param) }
  if (url !== undefined && /^https:\/\//i.test(url)) return { fileData: fileData(url, param, context) }
  throw refuse(param, "Expected a data URL such as data:image/png;base64,...")
}

const inlineData = (url: string, param: string): JsonObject => {
  const { type, base64 } = dataUrlOf(url, param)
  if (type === "") throw refuse(param, "The data URL must name its media type")
  return { mimeType: type, data: base64 }
}

const fileData = (url: string, param: string, { fileUrls, sharedIds }: MediaContext): JsonObject => {
  if (!fileUrls) throw refuse(param, "This model takes no URLs; send the content as a data URL")
  const parsed = URL.parse(url)
  if (parsed === null) throw refuse(param, "Expected an https URL")
  const host = hostOf(parsed)
  // Uploads lie in our account, which all members share; buckets of the storage host are public or closed by themselves.
  if (!sharedIds && host.endsWith("googleapis.com") && host !== "storage.googleapis.com") {
    throw refuse(param, "The URL names something stored at the vendor, which the gateway does not offer")
  }
  return { fileUri: url }
}
