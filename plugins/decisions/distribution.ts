/** What a model's answer says of each option: numbers that sum to 1, from its log probabilities or its own words. */

import { type ChatAnswer, isObject, type JsonObject, unreadable } from "../../core/index.ts"
import { keyOf, type Means } from "./prompt.ts"
import type { Question } from "./questions.ts"

/** One number for each option of a question, in their order. */
export type Distribution = readonly number[]

/**
 * @returns for each question its distribution; `undefined` when the model declined to answer
 * @throws GatewayError `upstream_unreadable` (502): the answer does not fit the schema that was asked for
 */
export const distributionsOf = (
  answer: ChatAnswer,
  questions: readonly Question[],
  means: Means,
): readonly Distribution[] | undefined => {
  const choice = first(answer.choices)
  const message: JsonObject = isObject(choice.message) ? choice.message : {}
  const text = typeof message.content === "string" ? message.content : ""
  const refused = typeof message.refusal === "string" && message.refusal !== ""
  if (text === "" && (refused || choice.finish_reason === "content_filter")) return undefined
  const answers = parsed(text)
  const tokens = means === "logprobs" ? tokensOf(choice.logprobs) : []
  return questions.map(({ options }, index) => {
    const said = answers[keyOf(index)]
    if (means === "stated") return normal(statedOf(said, options.length))
    if (!Number.isInteger(said) || options[said as number] === undefined) throw unreadable()
    return thoughtOf(tokens, keyOf(index), options.length) ?? options.map((_, number) => (number === said ? 1 : 0))
  })
}

const first = (list: unknown): JsonObject => {
  const [one] = Array.isArray(list) ? (list as readonly unknown[]) : []
  return isObject(one) ? one : {}
}

const parsed = (text: string): JsonObject => {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // said below
  }
  throw unreadable()
}

const statedOf = (said: unknown, options: number): readonly number[] =>
  Array.from({ length: options }, (_, number) => {
    const probability = isObject(said) ? said[String(number)] : undefined
    if (typeof probability === "number" && probability >= 0 && probability <= 1) return probability
    throw unreadable()
  })

/** A model that gives nothing to any option does not know: all are alike. */
const normal = (weights: readonly number[]): Distribution => {
  const sum = weights.reduce((all, weight) => all + weight, 0)
  return weights.map(weight => (sum > 0 ? weight / sum : 1 / weights.length))
}

interface Token {
  readonly text: string
  readonly alternatives: readonly JsonObject[]
}

const tokensOf = (logprobs: unknown): readonly Token[] => {
  const content = isObject(logprobs) && Array.isArray(logprobs.content) ? logprobs.content : []
  return content.filter(isObject).map(one => ({
    text: typeof one.token === "string" ? one.token : "",
    alternatives: [one, ...(Array.isArray(one.top_logprobs) ? one.top_logprobs.filter(isObject) : [])],
  }))
}

/** What the model thought where it wrote the number of a question; `undefined` when no single token wrote it. */
const thoughtOf = (tokens: readonly Token[], key: string, options: number): Distribution | undefined => {
  const text = tokens.map(token => token.text).join("")
  const found = new RegExp(`"${key}"\\s*:\\s*(?=\\d)`).exec(text)
  if (found === null) return undefined
  const token = startingAt(tokens, found.index + found[0].length)
  if (token === undefined) return undefined
  const weights = new Array<number>(options).fill(0)
  for (const { token: written, logprob } of token.alternatives) {
    const number = typeof written === "string" && /^\s*\d{1,3}$/.test(written) ? Number(written) : -1
    if (number in weights && typeof logprob === "number" && logprob <= 0) weights[number] = Math.exp(logprob)
  }
  return weights.some(weight => weight > 0) ? normal(weights) : undefined
}

/** The token of a number: it may begin with the space before it. */
const startingAt = (tokens: readonly Token[], offset: number): Token | undefined => {
  let at = 0
  for (const token of tokens) {
    const start = at + (token.text.length - token.text.trimStart().length)
    if (start === offset && /^\s*\d+$/.test(token.text)) return token
    at += token.text.length
  }
  return undefined
}
