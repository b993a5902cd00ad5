/** What a simulated model answers: the same prompt, the same answer, whatever the wire. */

import { isObject, type JsonObject, type JsonSchema } from "../../core/index.ts"
import { exampleOf } from "./example.ts"
import { estimateTokens, firstTokens } from "./tokens.ts"

export interface Tool {
  readonly name: string
  readonly parameters: JsonSchema
}

/** A request, freed from its wire. */
export interface Prompt {
  /** The last text of the user. */
  readonly question: string
  /** The text of the tool result that ends the conversation; tools are not called again then. */
  readonly toolResult?: string | undefined
  readonly tools: readonly Tool[]
  /** `free`: the first tool is called, or the one whose name stands in the question. */
  readonly toolChoice: "free" | "none" | { readonly name: string }
  /** A structured answer: by a schema, or any JSON object. */
  readonly format?: JsonSchema | undefined
  /** Tokens, thoughts included; Infinity = no limit. */
  readonly maxTokens: number
  readonly stop: readonly string[]
  /** Whether the model reasons before it answers. */
  readonly thinks: boolean
}

export interface Answer {
  /** Empty when the model does not reason. */
  readonly thought: string
  readonly text: string
  /** Instead of text. */
  readonly call?: { readonly name: string; readonly arguments: JsonObject }
  readonly end: "done" | "stopped" | "length" | "call"
  /** The stop sequence that ended it. */
  readonly stoppedBy?: string
  readonly thoughtTokens: number
  /** Thoughts included. */
  readonly outputTokens: number
}

export const answerTo = (prompt: Prompt): Answer => {
  const whole = prompt.thinks ? thoughtOf(prompt) : ""
  const thought = firstTokens(whole, prompt.maxTokens)
  const thoughtTokens = estimateTokens(thought)
  const left = thought === whole ? prompt.maxTokens - thoughtTokens : 0
  const said = callOf(prompt, left) ?? speak(prompt, left)
  const { text, call } = said
  const spoken = call === undefined ? estimateTokens(text) : callTokens(call)
  return { ...said, thought, thoughtTokens, outputTokens: thoughtTokens + spoken }
}

/** The pieces in which a text is streamed: words with the white space before them. Joined they are the text. */
export const piecesOf = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? []

/** A string, in pieces of so many characters: arguments are streamed without regard to their words. */
export const slicesOf = (text: string, length: number): readonly string[] =>
  text.match(new RegExp(`.{1,${length}}`, "gsu")) ?? []

type Said = Pick<Answer, "text" | "call" | "end" | "stoppedBy">
type Call = NonNullable<Answer["call"]>

const callTokens = (call: Call): number => estimateTokens(call.name) + estimateTokens(JSON.stringify(call.arguments))

/** A call that the limit would cut is not made: half of its arguments is of no use to anyone. */
const callOf = (prompt: Prompt, maxTokens: number): Said | undefined => {
  const tool = toolOf(prompt)
  if (tool === undefined) return undefined
  const example = exampleOf(tool.parameters, prompt.question)
  const call = { name: tool.name, arguments: isObject(example) ? example : {} }
  return callTokens(call) > maxTokens ? { text: "", end: "length" } : { text: "", call, end: "call" }
}

const toolOf = ({ tools, toolChoice, toolResult, question }: Prompt): Tool | undefined => {
  if (toolChoice === "none" || toolResult !== undefined) return undefined
  if (toolChoice !== "free") return tools.find(tool => tool.name === toolChoice.name)
  return tools.find(tool => question.includes(tool.name)) ?? tools[0]
}

const speak = (prompt: Prompt, maxTokens: number): Said => {
  const { text: said, stoppedBy } = untilStop(wordsOf(prompt), prompt.stop)
  const text = firstTokens(said, maxTokens)
  if (text !== said) return { text, end: "length" }
  return stoppedBy === undefined ? { text, end: "done" } : { text, end: "stopped", stoppedBy }
}

/** The stop sequence that comes first; it is no part of the text. */
const untilStop = (text: string, stop: readonly string[]): { text: string; stoppedBy?: string } => {
  const [first] = stop
    .map(sequence => ({ sequence, at: sequence === "" ? -1 : text.indexOf(sequence) }))
    .filter(({ at }) => at >= 0)
    .sort((one, other) => one.at - other.at)
  return first === undefined ? { text } : { text: text.slice(0, first.at), stoppedBy: first.sequence }
}

const wordsOf = ({ format, toolResult, question }: Prompt): string => {
  if (format !== undefined) return JSON.stringify(exampleOf(format, question))
  if (toolResult !== undefined) return `The tool answered: ${clip(toolResult, 400)}`
  for (const [pattern, answer] of knowledge) {
    const match = pattern.exec(question.slice(0, 2_000))
    if (match !== null) return answer(match)
  }
  return ordinary(question)
}

/** What the sandbox understands, from top to bottom. */
const knowledge: readonly (readonly [RegExp, (match: RegExpExecArray) => string])[] = [
  [/\bcount (?:from \d+ )?to (\d+)/i, ([, to]) => numbersTo(Math.min(Number(to), 10_000))],
  [/(-?\d{1,9})\s*([-+*×/÷])\s*(\d{1,9})/, ([sum, left, sign, right]) => `${sum} = ${reckon(+left!, sign!, +right!)}`],
  [/\b(?:say|repeat|reply with|answer with)(?: exactly| only| just)*:?\s+["']?(.+?)["']?\s*$/is, ([, words]) => words!],
]

const numbersTo = (last: number): string => Array.from({ length: last }, (_, at) => at + 1).join(", ")

const reckon = (left: number, sign: string, right: number): number => {
  if (sign === "+") return left + right
  if (sign === "-") return left - right
  return sign === "*" || sign === "×" ? left * right : left / right
}

const ordinary = (question: string): string =>
  `${question === "" ? "Nothing was asked." : `You asked: "${clip(question, 160)}"`} This is the sandbox: no model was ` +
  "called, and these words are the same each time. The protocol is the vendor's own, with its framing, finish reasons " +
  "and token counts. Ask to count to 100 for a longer answer, to say something for an exact one, or give a tool to see it called."

const thoughtOf = ({ question }: Prompt): string =>
  `The question is "${clip(question, 80)}". It can be answered in a few words, so that is what I will do.`

const clip = (text: string, length: number): string => {
  const letters = [...text.slice(0, length * 2)]
  return letters.length > length ? `${letters.slice(0, length).join("")}…` : text
}
