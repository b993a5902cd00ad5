/** The questions of both request forms, read into one: each is a choice among numbered options. */

import { invalidInput, isObject, type JsonObject } from "../../core/index.ts"

/** `predicate` is the list form's word for `noul`. */
export const questionTypes = ["choice", "score", "noul", "predicate"] as const
export type QuestionType = (typeof questionTypes)[number]

export interface Option {
  /** What the answer says: an option's own value, a level's label. */
  readonly value: string | boolean
  readonly description?: string
}

export interface Question {
  /** The key of the map form, the `name` of the list form. */
  readonly name: string | null
  readonly type: QuestionType
  readonly instructions: string
  /** In order: a score's from the lowest level up, a noul's `no` before `yes`. */
  readonly options: readonly Option[]
}

export const most = { questions: 64, options: 100, levels: 10 } as const

type Place = readonly (string | number)[]

/**
 * @throws GatewayError `validation_failed` (422): a question without instructions, of an unknown type, with too few,
 *   too many or repeated options
 */
export const questionsOf = (questions: unknown): readonly Question[] => {
  const at: Place = ["body", "questions"]
  const entries = Array.isArray(questions)
    ? questions.map((one, index) => questionOf(one, nameOf(one, [...at, index]), [...at, index]))
    : Object.entries(questions as JsonObject).map(([name, one]) => questionOf(one, name, [...at, name]))
  if (entries.length < 1 || entries.length > most.questions) {
    throw miscounted(at, entries.length, 1, `${most.questions} questions`)
  }
  return entries
}

const nameOf = (question: unknown, at: Place): string | null => {
  const name = isObject(question) ? (question.name ?? null) : null
  if (name === null || typeof name === "string") return name
  throw invalidInput([...at, "name"], "Input should be a valid string", "string_type", name)
}

const questionOf = (question: unknown, name: string | null, at: Place): Question => {
  if (!isObject(question)) throw invalidInput(at, "Input should be an object", "dict_type", question)
  const type = questionTypes.find(one => one === question.type)
  if (type === undefined) {
    throw invalidInput([...at, "type"], "Input should be 'choice', 'score' or 'noul'", "literal_error", question.type)
  }
  const instructions = textOf(question.instructions)
  if (instructions === undefined) throw invalidInput([...at, "instructions"], "Field required", "missing")
  return { name, type, instructions, options: readers[type](question, at) }
}

/** A text, or JSON: what is written in it reaches the model as it is. */
export const textOf = (value: unknown): string | undefined => {
  if (value === undefined || value === null || value === "") return undefined
  return typeof value === "string" ? value : JSON.stringify(value)
}

const choice = (question: JsonObject, at: Place): readonly Option[] => {
  const [field, given] = firstOf(question, ["criteria", "options", "choices"], at)
  const options = isObject(given) ? Object.entries(given).map(([value, told]) => optionOf(value, told)) : listed(given)
  return checked(options, [...at, field], most.options, 1)
}

const score = (question: JsonObject, at: Place): readonly Option[] => {
  const [field, given] = firstOf(question, ["criteria", "levels", "options"], at)
  return checked(listed(given), [...at, field], most.levels, 2)
}

/** `criteria: {true, false}` says what each side means. */
const noul = ({ criteria }: JsonObject): readonly Option[] => {
  const told: JsonObject = isObject(criteria) ? criteria : {}
  return [optionOf("no", told.false), optionOf("yes", told.true)]
}

const readers: Readonly<Record<QuestionType, (question: JsonObject, at: Place) => readonly Option[]>> = {
  choice,
  score,
  noul,
  predicate: noul,
}

const firstOf = (question: JsonObject, names: readonly string[], at: Place): readonly [string, unknown] => {
  const name = names.find(one => question[one] !== undefined && question[one] !== null)
  if (name === undefined) throw invalidInput([...at, names[0] as string], "Field required", "missing")
  return [name, question[name]]
}

/** Plain values, or `{value | label | id, description}`; `undefined` when something is neither. */
const listed = (given: unknown): readonly Option[] | undefined => {
  if (!Array.isArray(given)) return undefined
  const options = given.map(one => {
    const value = isObject(one) ? (one.value ?? one.label ?? one.id) : one
    const isValue = typeof value === "string" ? value !== "" : typeof value === "boolean"
    return isValue ? optionOf(value as string | boolean, isObject(one) ? one.description : undefined) : undefined
  })
  return options.every(one => one !== undefined) ? options : undefined
}

const optionOf = (value: string | boolean, told: unknown): Option => {
  const description = textOf(told)
  return { value, ...(description === undefined ? {} : { description }) }
}

const checked = (options: readonly Option[] | undefined, at: Place, mostOptions: number, least: number) => {
  if (options === undefined) throw invalidInput(at, "Input should be a list of options", "list_type")
  if (options.length < least || options.length > mostOptions) {
    throw miscounted(at, options.length, least, `${mostOptions} options`)
  }
  // A text and a truth value that read alike are two options.
  if (new Set(options.map(option => option.value)).size < options.length) {
    throw invalidInput(at, "Input should have options that differ", "value_error")
  }
  return options
}

const miscounted = (at: Place, count: number, least: number, most: string) =>
  invalidInput(at, `Input should have ${least} to ${most}`, count < least ? "too_short" : "too_long")
