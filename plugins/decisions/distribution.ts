/** What a model's answer says of each option: numbers that sum to 1, from its log probabilities or its own words. */

import { type ChatAnswer, isObject, type JsonObject, list, record, text, unreadable } from "../../core/index.ts"
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
  const choice = record(list(answer.choices)[0])
  const { content, refusal } = record(choice.message)
  const words = text(content)
  const isRefused = text(refusal) !== undefined || choice.finish_reason === "content_filter"
  if (words === undefined && isRefused) return undefined
  const answers = parsed(words ?? "")
  const tokens = means === "logprobs" ? tokensOf(choice.logprobs) : []
  return questions.map(({ options }, index) => {
    const said = answers[keyOf(index)]
    if (means === "stated") return normal(statedOf(said, options.length))
    if (!Number.isInteger(said) || options[said as number] === undefined) throw unreadable()
    return thoughtOf(tokens, keyOf(index), options.length) ?? options.map((_, number) => (number === said ? 1 : 0))
  })
}

const parsed = (written: string): JsonObject => {
  try {
    const value: unknown = JSON.parse(written)
    if (isObject(value)) return value
  } catch {
    // said below
  }
  throw unreadable()
}

const statedOf = (said: unknown, options: number): readonly number[] =>
  Array.from({ length: options }, (_, number) => {
    const probability = record(said)[String(number)]
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

const tokensOf = (logprobs: unknown): readonly Token[] =>
  list(record(logprobs).content)
    .filter(isObject)
    .map(one => ({ text: text(one.token) ?? "", alternatives: [one, ...list(one.top_logprobs).filter(isObject)] }))

/** What the model thought where it wrote the number of a question; `undefined` when no single token wrote it. */
const thoughtOf = (tokens: readonly Token[], key: string, options: number): Distribution | undefined => {
  const words = tokens.map(token => token.text).join("")
  const found = new RegExp(`"${key}"\\s*:\\s*(?=\\d)`).exec(words)
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
