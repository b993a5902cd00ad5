/** Embeddings seen from the hub, for vendors that take only texts. */

import { GatewayError, unreadable } from "../../../core/index.ts"
import { answerIn } from "./answers.ts"
import { list, record } from "./json.ts"

type Request = Readonly<Record<string, unknown>>

/**
 * The texts of a request.
 *
 * @param most texts that the vendor takes in one call
 * @throws GatewayError `invalid_request` (400): tokens instead of texts, or too many texts
 */
export const textsOf = ({ input }: Request, most: number): readonly string[] => {
  const texts = Array.isArray(input) ? input : [input]
  if (!texts.every(text => typeof text === "string")) {
    throw refused("This model takes texts as 'input', no tokens")
  }
  if (texts.length > most)
    throw refused(`This model takes at most ${most} texts in one call, ${texts.length} were sent`)
  return texts
}

const refused = (message: string) => new GatewayError("invalid_request", message, { param: "input" })

/**
 * `input_type` of the request in the words of one vendor. The hub's own words are Cohere's; a word that is not in the
 * table goes to the vendor as it is.
 */
export const inputType = ({ input_type }: Request, words: Readonly<Record<string, string>>): string | undefined => {
  if (typeof input_type !== "string") return undefined
  return Object.hasOwn(words, input_type) ? words[input_type] : input_type
}

/** The hub's answer. @throws GatewayError `upstream_unreadable` (502) when there are not as many vectors as texts */
export const embeddingList = (vectors: readonly unknown[], texts: number, tokens: number | undefined) => {
  if (vectors.length !== texts || !vectors.every(isVector)) throw unreadable()
  return {
    object: "list",
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
    ...(tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  }
}

const isVector = (vector: unknown): boolean =>
  list(vector).length > 0 && list(vector).every(value => typeof value === "number")

/** The answer of vendors that write the hub's shape and count one total. @throws GatewayError as `embeddingList` */
export const countedList = (body: Buffer, texts: number) => {
  const { data, usage } = answerIn(body)
  const { total_tokens } = record(usage)
  if (list(data).length !== texts) throw unreadable()
  return {
    object: "list",
    data: list(data),
    ...(typeof total_tokens === "number" ? { usage: { prompt_tokens: total_tokens, total_tokens } } : {}),
  }
}
