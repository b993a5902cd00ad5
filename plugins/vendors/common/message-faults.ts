/** Errors of vendors that say no more than a status and a sentence. */

import { type Adapter, afterDash, type Dialect, type Fault, type FaultKind } from "../../../core/index.ts"
import { faultOf, kindOf, retryAfterMs } from "./faults.ts"
import { type JsonObject, list, parse, record, text } from "./json.ts"

export interface MessageFaults {
  /** Statuses whose meaning is the vendor's own. */
  readonly statuses?: Readonly<Record<number, FaultKind>>
  /** Words of `tag`, `code` or `type`, where the vendor has some. */
  readonly words?: Readonly<Record<string, FaultKind>>
  /** Sentences of an error below 500 that mean our account. They must not match what a client wrote. */
  readonly account?: RegExp
}

/** `Adapter.fault` by such a table. */
export const messageFaults =
  ({ statuses = {}, words = {}, account }: MessageFaults): Adapter["fault"] =>
  (status, body, headers): Fault => {
    const answer = record(parse(body))
    const message = messageOf(answer)
    const isAccount = status < 500 && message !== undefined && account?.test(message) === true
    return faultOf({
      kind: isAccount ? "account" : (wordOf(answer, words) ?? statuses[status] ?? kindOf(status)),
      status,
      message,
      retryAfterMs: retryAfterMs(headers),
    })
  }

const wordOf = (answer: JsonObject, words: Readonly<Record<string, FaultKind>>): FaultKind | undefined =>
  [answer.tag, answer.code, answer.type]
    .filter(word => typeof word === "string" && Object.hasOwn(words, word))
    .map(word => words[word as string])[0]

/** `{message}`, `{detail}` as a text or as a list of `{loc, msg}`, `{error}` as a text or as `{message}`. */
const messageOf = (answer: JsonObject): string | undefined =>
  text(answer.message) ??
  text(answer.detail) ??
  text(record(list(answer.detail)[0]).msg) ??
  text(answer.error) ??
  text(record(answer.error).message)

/** The shape that these vendors' own clients read: `message`, beside the gateway's `detail`. */
export const messageDialect = (name: string): Dialect => {
  const render: Dialect["render"] = error => ({ detail: error.detail, message: afterDash(error.message) })
  return { name, render, streamError: (error, id) => `data: ${JSON.stringify(render(error, id))}\n\n` }
}
