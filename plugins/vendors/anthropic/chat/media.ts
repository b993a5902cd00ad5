/** Images and documents in data URLs: what they really are, whatever they are declared to be. */

import { refuse } from "../../../../core/index.ts"

export interface Media {
  readonly type: string
  readonly base64: string
}

const dataUrl = /^data:([^;,]*)((?:;[^;,]*)*),/i

/** @throws GatewayError (400) when the URL is no base64 data URL */
export const mediaOf = (url: string, param: string): Media => {
  const head = dataUrl.exec(url.slice(0, 512))
  if (head === null) throw refuse(param, "Expected a data URL such as data:image/png;base64,...")
  if (!/;base64$/i.test(head[2] ?? "")) throw refuse(param, "A data URL must be coded in base64")
  const base64 = url.slice(head[0].length)
  if (base64 === "") throw refuse(param, "The data URL holds no data")
  return { type: sniffed(base64) ?? declared(head[1] ?? ""), base64 }
}

/** First bytes by which formats are known; the vendor refuses an image that is not what it is declared to be. */
const signatures: readonly (readonly [type: string, matches: (bytes: Buffer) => boolean])[] = [
  ["image/png", bytes => bytes.readUInt32BE(0) === 0x89504e47],
  ["image/jpeg", bytes => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff],
  ["image/gif", bytes => bytes.toString("latin1", 0, 4) === "GIF8"],
  ["image/webp", bytes => bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP"],
  ["application/pdf", bytes => bytes.toString("latin1", 0, 5) === "%PDF-"],
]

const sniffed = (base64: string): string | undefined => {
  const bytes = Buffer.from(base64.slice(0, 24), "base64")
  if (bytes.length < 4) return undefined
  return signatures.find(([, matches]) => matches(bytes))?.[0]
}

const declared = (type: string): string => {
  const lower = type.toLowerCase()
  return lower === "image/jpg" ? "image/jpeg" : lower
}
