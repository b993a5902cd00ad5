/** Distributions written as answers, in the form of the request. */

import { type ChatAnswer, type JsonObject, record } from "../../core/index.ts"
import type { Distribution } from "./distribution.ts"
import type { Question } from "./questions.ts"

export type Form = "map" | "list"

export interface Decided {
  readonly model: string
  readonly form: Form
  readonly questions: readonly Question[]
  /** Absent: the model declined. */
  readonly distributions: readonly Distribution[] | undefined
  readonly chat: ChatAnswer
}

export const decision = ({ model, form, questions, distributions, chat }: Decided) => {
  const answers = questions.map((question, index) => {
    const distribution = distributions?.[index]
    if (distribution === undefined) return { type: "refusal" }
    return writers[question.type](question, distribution, form)
  })
  return {
    model,
    answers:
      form === "list"
        ? answers.map((answer, index) => ({ name: questions[index]?.name ?? null, ...answer }))
        : Object.fromEntries(answers.map((answer, index) => [questions[index]?.name ?? "", answer])),
    usage: usageOf(chat.usage, form),
  }
}

type Write = (question: Question, distribution: Distribution, form: Form) => JsonObject

const yes = (distribution: Distribution): number => rounded(distribution[1] ?? 0)

const writers: Readonly<Record<Question["type"], Write>> = {
  noul: (_, distribution) => ({ type: "noul", noul: yes(distribution) }),
  predicate: (_, distribution) => ({ type: "predicate", probability: yes(distribution) }),
  choice: ({ options }, exact, form) => {
    const distribution = exact.map(rounded)
    const confidence = Math.max(...distribution)
    const values = options.map(option => option.value)
    const probabilities =
      form === "list"
        ? values.map((value, number) => ({ value, probability: distribution[number] }))
        : Object.fromEntries(values.map((value, number) => [String(value), distribution[number]]))
    return { type: "choice", choice: values[distribution.indexOf(confidence)], probabilities, confidence }
  },
  score: ({ options }, exact, form) => {
    const distribution = exact.map(rounded)
    const labels = options.map(option => String(option.value))
    // The mean level, of the numbers before they were rounded.
    const score = rounded(exact.reduce((sum, probability, level) => sum + probability * level, 0))
    const told =
      form === "list"
        ? { probabilities: labels.map((label, value) => ({ label, value, probability: distribution[value] })) }
        : { legend: { ...labels }, probabilities: { ...distribution } }
    return { type: "score", score, ...told, confidence: Math.max(...distribution) }
  },
}

/** Six digits: beyond them a probability tells nothing. */
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6

const usageOf = (reported: unknown, form: Form) => {
  const usage = record(reported)
  const number = (value: unknown): number => (typeof value === "number" ? value : 0)
  const input_tokens = number(usage.prompt_tokens)
  const output_tokens = number(usage.completion_tokens)
  if (form === "map") return { input_tokens, output_tokens }
  const inputs = record(usage.prompt_tokens_details)
  return {
    input_tokens,
    input_tokens_details: {
      cached_tokens: number(inputs.cached_tokens),
      cache_write_tokens: number(inputs.cache_write_tokens),
    },
    output_tokens,
    output_tokens_details: { reasoning_tokens: number(record(usage.completion_tokens_details).reasoning_tokens) },
    total_tokens: input_tokens + output_tokens,
  }
}
