/** The messages of a chat request as instructions and contents: roles alternate, no part is empty, no text is lost. */

import { type JsonObject, refuse } from "../../../../core/index.ts"
import { callParts, callsOf, type HistoryContext, type Message, orphan, type Placed, resultParts } from "./calls.ts"
import { contentOf, type Part, textParts } from "./parts.ts"

export interface Turn {
  readonly role: "user" | "model"
  readonly parts: readonly Part[]
}

export interface Conversation {
  readonly systemInstruction?: JsonObject
  readonly contents: readonly Turn[]
}

/** @throws GatewayError (400) for what the vendor cannot be told, and for tool calls and results that do not pair up */
export const conversationOf = (messages: readonly Message[], context: HistoryContext): Conversation => {
  const placed = messages.map((message, at) => ({ message, at }))
  const first = placed.find(({ message }) => !isInstruction(message))?.at ?? placed.length
  const system = placed.slice(0, first).flatMap(one => said(one))
  const contents = opened(merged(turnsOf(placed.slice(first), context)))
  if (contents.length > 0) return { ...(system.length === 0 ? {} : { systemInstruction: { parts: system } }), contents }
  // The vendor wants at least one turn: instructions that stand alone are what the user says.
  if (system.length > 0) return { contents: [{ role: "user", parts: system }] }
  throw refuse("messages", "'messages' hold nothing that could be answered")
}

const isInstruction = ({ role }: Message): boolean => role === "system" || role === "developer"
const isResult = ({ role }: Message): boolean => role === "tool" || role === "function"

const said = ({ message, at }: Placed): readonly Part[] =>
  contentOf(message.content, `messages[${at}].content`, undefined).all

function* turnsOf(placed: readonly Placed[], context: HistoryContext): Generator<Turn> {
  for (let index = 0; index < placed.length; index++) {
    const one = placed[index]!
    if (isResult(one.message)) throw orphan(one)
    if (one.message.role !== "assistant") {
      yield { role: "user", parts: userParts(one, context) }
      continue
    }
    const answers = resultsFrom(placed, index + 1)
    yield* assistantTurns(one, answers, context)
    index += answers.length
  }
}

const resultsFrom = (placed: readonly Placed[], start: number): readonly Placed[] => {
  const end = placed.findIndex(({ message }, index) => index >= start && !isResult(message))
  return placed.slice(start, end < 0 ? placed.length : end)
}

/** Instructions in the middle keep their place: at the top they would mean something else, and spoil the cache. */
const userParts = ({ message, at }: Placed, { media }: HistoryContext): readonly Part[] => {
  if (isInstruction(message)) return said({ message, at })
  if (message.role === "user") return contentOf(message.content, `messages[${at}].content`, media).all
  throw refuse(`messages[${at}].role`, `A message of role '${String(message.role)}' is not supported`)
}

function* assistantTurns(one: Placed, answers: readonly Placed[], context: HistoryContext): Generator<Turn> {
  const { message, at } = one
  if (message.audio !== undefined && message.audio !== null) {
    throw refuse(`messages[${at}].audio`, "Audio of earlier answers is not available to this model")
  }
  const calls = callsOf(one)
  yield { role: "model", parts: [...said(one), ...textParts(message.refusal), ...callParts(calls, context)] }
  yield { role: "user", parts: resultParts(calls, answers, at, context) }
}

/** Neighbours of one role are one turn; a turn without parts is none. */
const merged = (turns: Iterable<Turn>): readonly Turn[] => {
  const out: { role: Turn["role"]; parts: Part[] }[] = []
  for (const { role, parts } of turns) {
    const last = out.at(-1)
    if (parts.length === 0) continue
    if (last?.role === role) last.parts.push(...parts)
    else out.push({ role, parts: [...parts] })
  }
  return out
}

/** Said where a conversation begins with the model: a turn of tool calls must follow one of the user. */
const opening: Turn = { role: "user", parts: [{ text: "(The conversation begins.)" }] }

const opened = (turns: readonly Turn[]): readonly Turn[] => (turns[0]?.role === "model" ? [opening, ...turns] : turns)
