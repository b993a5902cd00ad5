/** Content blocks of the Messages wire as content parts of chat. */

import { type JsonObject, list, record, refuse, text } from "../../../core/index.ts"

export type Part = JsonObject

type BlockReader = (block: JsonObject, param: string) => readonly Part[]

const textPart = (value: unknown): readonly Part[] => {
  const told = text(value)
  return told === undefined ? [] : [{ type: "text", text: told }]
}

/** What a user, or a tool's result, may hold. */
const readers: Readonly<Record<string, BlockReader>> = {
  text: block => textPart(block.text),
  image: (block, param) => [imagePart(record(block.source), `${param}.source`)],
  document: (block, param) => documentParts(block, `${param}.source`),
  search_result: block => textPart(searchResult(block)),
}

/** The vendor's own search for tools: no other model knows what it points to. */
const passedOver: ReadonlySet<string> = new Set(["tool_reference"])

/** @throws GatewayError (400) for blocks that chat cannot express */
export const partsOf = (content: unknown, param: string): readonly Part[] => {
  if (typeof content === "string") return textPart(content)
  return list(content).flatMap((one, at) => {
    const block = record(one)
    const type = text(block.type) ?? ""
    if (passedOver.has(type)) return []
    if (!Object.hasOwn(readers, type)) {
      throw refuse(`${param}[${at}]`, `A content block of type '${type}' is not supported here by this model`)
    }
    return readers[type]?.(block, `${param}[${at}]`) ?? []
  })
}

const imagePart = (source: JsonObject, param: string): Part => {
  const url = source.type === "url" ? text(source.url) : base64Url(source)
  if (url === undefined) throw refuse(param, "An image must be base64 data or an https URL")
  return { type: "image_url", image_url: { url } }
}

const base64Url = ({ type, media_type, data }: JsonObject): string | undefined =>
  type === "base64" && text(data) !== undefined ? `data:${String(media_type)};base64,${String(data)}` : undefined

const documentParts = (block: JsonObject, param: string): readonly Part[] => {
  const source = record(block.source)
  const title = text(block.title)
  if (source.type === "text") return textPart(titled(title, source.data))
  if (source.type === "content") return [...textPart(title), ...partsOf(source.content, `${param}.content`)]
  const file_data = base64Url(source)
  if (file_data === undefined) throw refuse(param, "A document must be base64 data or text")
  return [{ type: "file", file: { filename: title ?? "document.pdf", file_data } }]
}

const titled = (title: string | undefined, told: unknown): string =>
  title === undefined ? String(told ?? "") : `${title}\n\n${String(told ?? "")}`

const searchResult = ({ source, title, content }: JsonObject): string =>
  [text(title), text(source), ...list(content).map(block => text(record(block).text))]
    .filter(told => told !== undefined)
    .join("\n")
