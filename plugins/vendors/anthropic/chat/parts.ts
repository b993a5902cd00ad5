/** Content parts of chat messages as blocks of the Messages wire. */

import { isObject, isSet, type JsonObject, refuse } from "../../../../core/index.ts"
import type { DataUrl } from "../../common/data-url.ts"
import { list, record, text } from "../../common/json.ts"
import { mediaOf } from "./media.ts"

export type Block = Readonly<Record<string, unknown>>

/** The vendor refuses a text block without any visible character. */
export const textBlocks = (value: unknown, marker?: unknown): readonly Block[] =>
  typeof value === "string" && value.trim() !== "" ? [marked({ type: "text", text: value }, marker)] : []

/** A client's cache marker stays on its block. */
export const marked = (block: Block, marker: unknown): Block =>
  isObject(marker) ? { ...block, cache_control: marker } : block

type PartReader = (part: JsonObject, param: string) => readonly Block[]

const readers: Readonly<Record<string, PartReader>> = {
  text: part => textBlocks(part.text),
  refusal: part => textBlocks(part.refusal),
  image_url: (part, param) => [imageFrom(text(part.image_url) ?? record(part.image_url).url, `${param}.image_url.url`)],
  file: (part, param) => [documentFrom(record(part.file), `${param}.file`)],
}

/** Kinds of parts that a message of this role may hold. */
export const said: ReadonlySet<string> = new Set(["text", "refusal"])
export const shown: ReadonlySet<string> = new Set(["text", "image_url", "file"])

/**
 * @param content a string, a list of parts, or nothing
 * @param kinds the kinds of parts that may stand here
 * @param param where the content stands, for the refusal
 * @param marker the cache marker of the whole message
 */
export const blocksOf = (
  content: unknown,
  kinds: ReadonlySet<string>,
  param: string,
  marker?: unknown,
): readonly Block[] => {
  if (typeof content === "string") return textBlocks(content, marker)
  const blocks = list(content).flatMap((part, at) => partBlocks(record(part), kinds, `${param}[${at}]`))
  return blocks.map((block, at) => (at === blocks.length - 1 ? marked(block, marker) : block))
}

const partBlocks = (part: JsonObject, kinds: ReadonlySet<string>, param: string): readonly Block[] => {
  const kind = text(part.type) ?? ""
  const read = kinds.has(kind) && Object.hasOwn(readers, kind) ? readers[kind] : undefined
  if (read === undefined) throw refuse(param, `A content part of type '${kind}' is not supported here by this model`)
  return read(part, param).map(block => marked(block, part.cache_control))
}

const imageTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"])

const imageFrom = (url: unknown, param: string): Block => {
  if (typeof url !== "string" || url === "") throw refuse(param, "An image needs a URL")
  if (/^https:\/\//i.test(url)) return { type: "image", source: { type: "url", url } }
  if (/^data:/i.test(url)) return imageBlock(mediaOf(url, param), param)
  throw refuse(param, "An image must be an https URL or a data URL")
}

const imageBlock = ({ type, base64 }: DataUrl, param: string): Block => {
  if (!imageTypes.has(type)) throw refuse(param, "An image must be JPEG, PNG, GIF or WebP")
  return { type: "image", source: { type: "base64", media_type: type, data: base64 } }
}

/** Ids name files in another vendor's account. */
const documentFrom = (file: JsonObject, param: string): Block => {
  if (isSet(file.file_id)) throw refuse(`${param}.file_id`, "Uploaded files are not available: send 'file_data'")
  if (typeof file.file_data !== "string") throw refuse(`${param}.file_data`, "A file needs 'file_data', a data URL")
  const media = mediaOf(file.file_data, `${param}.file_data`)
  const title = text(file.filename)
  return { type: "document", source: documentSource(media, param), ...(title === undefined ? {} : { title }) }
}

const documentSource = ({ type, base64 }: DataUrl, param: string): Block => {
  if (type === "application/pdf") return { type: "base64", media_type: type, data: base64 }
  if (!type.startsWith("text/")) throw refuse(`${param}.file_data`, "A file must be a PDF or plain text")
  // The wire knows one kind of text; marked-up and tabular text is text all the same.
  return { type: "text", media_type: "text/plain", data: Buffer.from(base64, "base64").toString() }
}
