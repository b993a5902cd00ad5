/** Token counts of the sandbox: no tokenizer, one rule for output, the gateway's own estimate for input. */

import { estimatedInput } from "../../core/index.ts"

const bytesPerToken = 3.5

/** Tokens of an output text: UTF-8 bytes / 3.5, rounded up. */
export const estimateTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / bytesPerToken)

/** The longest beginning of a text that counts no more than so many tokens, never cut within a character. */
export const firstTokens = (text: string, tokens: number): string => {
  const bytes = Buffer.from(text)
  let end = Math.min(bytes.length, Math.floor(tokens * bytesPerToken))
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.toString("utf8", 0, end)
}

/** A longer string that is a data URL or base64 is a file in disguise: it counts as a part, not as text. */
const blobLeastBytes = 256
const blob = /^(?:data:|[\w+/=-]{256})/

const imageTypes: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image"])
const fileTypes: ReadonlySet<unknown> = new Set(["document", "file", "input_file", "input_audio"])
const imageKeys: ReadonlySet<string> = new Set(["inlineData", "inline_data"])
const fileKeys: ReadonlySet<string> = new Set(["fileData", "file_data"])

/** Tokens of anything that stands in a request: a part, some messages, the whole body. */
export const inputTokens = (value: unknown): number => {
  const count = { textBytes: 0, images: 0, files: 0 }
  add(value, count)
  return estimatedInput(count)
}

interface Count {
  textBytes: number
  images: number
  files: number
}

const add = (value: unknown, count: Count): void => {
  if (typeof value === "string") count.textBytes += isBlob(value) ? 0 : Buffer.byteLength(value)
  if (typeof value !== "object" || value === null) return
  const type = (value as { type?: unknown }).type
  if (imageTypes.has(type)) count.images += 1
  if (fileTypes.has(type)) count.files += 1
  for (const [key, inner] of Object.entries(value)) {
    if (imageKeys.has(key)) count.images += 1
    if (fileKeys.has(key) && typeof inner === "object") count.files += 1
    add(inner, count)
  }
}

const isBlob = (text: string): boolean => text.length >= blobLeastBytes && blob.test(text)
