/** Images and documents in data URLs: what they really are, whatever they are declared to be. */

import { type DataUrl, dataUrlOf } from "../../common/data-url.ts"

/** @throws GatewayError (400) when the URL is no base64 data URL */
export const mediaOf = (url: string, param: string): DataUrl => {
  const { type, base64 } = dataUrlOf(url, param)
  return { type: sniffed(base64) ?? type, base64 }
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
