/** Image blocks of the Messages wire, which clients that move between both wires send here too, as parts of chat. */

import { type ChatRequest, isObject, type JsonObject, refuse, text } from "../../core/index.ts"

/** @throws GatewayError `invalid_request` (400) for a block that holds no image */
export const withImageUrls = (request: ChatRequest): ChatRequest => {
  if (!request.messages.some(hasBlock)) return request
  return { ...request, messages: request.messages.map((message, at) => translated(message, `messages[${at}].content`)) }
}

const isBlock = (part: unknown): part is JsonObject & { readonly source: JsonObject } =>
  isObject(part) && part.type === "image" && isObject(part.source)

const hasBlock = ({ content }: JsonObject): boolean => Array.isArray(content) && content.some(isBlock)

const translated = (message: JsonObject, param: string): JsonObject => {
  if (!Array.isArray(message.content)) return message
  const parts: readonly unknown[] = message.content
  return { ...message, content: parts.map((part, at) => (isBlock(part) ? imagePart(part, `${param}[${at}]`) : part)) }
}

/** What else stands in the block, such as a cache marker, stays. */
const imagePart = ({ source, ...rest }: JsonObject & { readonly source: JsonObject }, param: string): JsonObject => {
  const url = source.type === "url" ? webUrl(source.url) : dataUrl(source)
  if (url === undefined) throw refuse(`${param}.source`, "An image must be base64 data with its media type, or a URL")
  return { ...rest, type: "image_url", image_url: { url } }
}

/** Other schemes are uploads of some vendor's. */
const webUrl = (url: unknown): string | undefined => (/^https?:\/\//i.test(text(url) ?? "") ? text(url) : undefined)

const dataUrl = ({ type, media_type, data }: JsonObject): string | undefined =>
  type === "base64" && text(media_type) !== undefined && text(data) !== undefined
    ? `data:${media_type};base64,${data}`
    : undefined
