/** What the bench sends, and who it says it is: shared by the client and by the store that is filled. */

import { createHash } from "node:crypto"

/** Members in the store, each with one key: so many that no limit of the product is reached. */
export const members = 5_000

/** The same key for the same member in every process. */
export const keyOf = (member: number): string =>
  `tg_${createHash("sha256")
    .update(`bench member ${member % members}`)
    .digest("base64url")}`

const bodies = {
  /** 1 KB in, 0.6 KB out. */
  whole: { model: "bench-whole", stream: false, characters: 900 },
  /** 300 text events, one each 5 ms. */
  stream: { model: "bench-stream", stream: true, characters: 900 },
  /** A stream whose events all come at once. */
  first: { model: "bench-first", stream: true, characters: 900 },
  /** A stream that stays open after its first text. */
  open: { model: "bench-open", stream: true, characters: 900 },
} as const

export type Shape = keyof typeof bodies

/** One that the Messages wire takes, and the chat endpoint too. */
const bodyOf = (shape: Shape): string => {
  const { model, stream, characters } = bodies[shape]
  const content = "All work and no play. ".repeat(50).slice(0, characters)
  return JSON.stringify({ model, max_tokens: 100, stream, messages: [{ role: "user", content }] })
}

const made = new Map<Shape, string>()

/** The bytes of a request; `member` undefined: a credential that only the upstream would look at. */
export const requestFor = (shape: Shape, path: string, member: number | undefined, fields = ""): Buffer => {
  const body = made.get(shape) ?? bodyOf(shape)
  made.set(shape, body)
  return Buffer.concat([head(path, member, Buffer.byteLength(body), fields), Buffer.from(body)])
}

/** A document of so many bytes, as base64 within a message. */
export const largeRequest = (path: string, member: number, bytes: number): Buffer => {
  const source = { type: "base64", media_type: "image/png", data: `iVBORw0KGgo${"A".repeat(bytes)}` }
  const messages = [{ role: "user", content: [{ type: "image", source }] }]
  const body = Buffer.from(JSON.stringify({ model: "bench-whole", max_tokens: 100, messages }))
  return Buffer.concat([head(path, member, body.length), body])
}

const head = (path: string, member: number | undefined, length: number, fields = ""): Buffer =>
  Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: bench\r\nuser-agent: bench\r\ncontent-type: application/json\r\n` +
      `anthropic-version: 2023-06-01\r\nx-api-key: ${member === undefined ? "bench" : keyOf(member)}\r\n` +
      `content-length: ${length}\r\n${fields}\r\n`,
  )
