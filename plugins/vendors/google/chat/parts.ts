/** The content of one message as parts of this wire. */

import { type JsonObject, refuse } from "../../../../core/index.ts"
import { list, record } from "../../common/json.ts"
import { audioPart, filePart, imagePart, type MediaContext } from "./media.ts"

export type Part = JsonObject

/** The vendor refuses empty parts. */
export const textParts = (value: unknown): readonly Part[] =>
  typeof value === "string" && value !== "" ? [{ text: value }] : []

export interface Content {
  readonly text: readonly Part[]
  readonly media: readonly Part[]
  /** Both, in the order that the client wrote them. */
  readonly all: readonly Part[]
}

/** @throws GatewayError (400) naming a content part that this wire cannot express */
export const contentOf = (content: unknown, param: string, context: MediaContext | undefined): Content => {
  if (!Array.isArray(content)) {
    const text = textParts(content)
    return { text, media: [], all: text }
  }
  const all = list(content).flatMap((part, at) => partOf(record(part), `${param}[${at}]`, context))
  return {
    all,
    text: all.filter(part => "text" in part),
    media: all.filter(part => !("text" in part)),
  }
}

const media: Readonly<Record<string, typeof imagePart>> = {
  image_url: imagePart,
  input_audio: audioPart,
  file: filePart,
}

const partOf = (part: JsonObject, param: string, context: MediaContext | undefined): readonly Part[] => {
  if (part.type === "text") return textParts(part.text)
  if (part.type === "refusal") return textParts(part.refusal)
  const type = String(part.type)
  const read = Object.hasOwn(media, type) ? media[type] : undefined
  if (read === undefined || context === undefined) {
    throw refuse(`${param}.type`, `Content of type '${type}' is not supported here`)
  }
  return [read(part, param, context)]
}
