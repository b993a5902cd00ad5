/** A data URL of a chat request, taken apart. */

import { refuse } from "../../../core/index.ts"

export interface DataUrl {
  /** The declared media type in lower case; empty when none is declared. */
  readonly type: string
  readonly base64: string
}

/** No head is longer; what follows may have megabytes. */
const headMax = 512
const headForm = /^data:([^;,]*)((?:;[^;,]*)*),/i

/** @throws GatewayError (400) when the URL is no base64 data URL, or an empty one */
export const dataUrlOf = (url: string, param: string): DataUrl => {
  const head = headForm.exec(url.slice(0, headMax))
  if (head === null) throw refuse(param, "Expected a data URL such as data:image/png;base64,...")
  if (!/;base64$/i.test(head[2] ?? "")) throw refuse(param, "A data URL must be coded in base64")
  const base64 = url.slice(head[0].length)
  if (base64 === "") throw refuse(param, "The data URL holds no data")
  return { type: mediaType(head[1] ?? ""), base64 }
}

/** `image/jpg` is written often, and means nothing to vendors. */
const mediaType = (declared: string): string => {
  const type = declared.toLowerCase()
  return type === "image/jpg" ? "image/jpeg" : type
}
