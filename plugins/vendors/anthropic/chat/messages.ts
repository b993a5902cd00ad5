/** The messages of a chat request as system text and turns. */

import { argumentsIn, type ChatContext, isObject, type JsonObject, refuse } from "../../../../core/index.ts"
import { list, record, text } from "../../common/json.ts"
import { keptBlocks } from "./kept.ts"
import type { ToolNames } from "./names.ts"
import { type Block, blocksOf, said, shown, textBlocks } from "./parts.ts"
import { type Turn, Turns } from "./turns.ts"

export interface Conversation {
  readonly system: readonly Block[]
  readonly turns: readonly Turn[]
}

type Message = Readonly<Record<string, unknown>>

/** Said where a conversation begins with the assistant: the vendor wants the user first. */
const opening: Block = { type: "text", text: "(The conversation begins.)" }

/** @throws GatewayError (400) for what the vendor cannot be told, and for tool calls and results that do not pair up */
export const conversationOf = (
  messages: readonly Message[],
  names: ToolNames,
  context: Pick<ChatContext, "signatures" | "target" | "rules">,
): Conversation => {
  const start = messages.findIndex(message => !isSystem(message))
  const count = start < 0 ? messages.length : start
  const system = messages.slice(0, count).flatMap((message, at) => spoken(message, said, at))
  const turns = new Turns()
  for (const [at, message] of messages.entries()) {
    if (at >= count) addMessage(turns, message, at, names, context)
  }
  turns.close()
  if (turns.all.length === 0) return onlySystem(system)
  if (turns.all[0]?.role === "assistant") turns.all.unshift({ ...emptyTurn(), content: [opening] })
  checkPrefill(turns.all, context)
  return { system, turns: turns.all }
}

const isSystem = ({ role }: Message): boolean => role === "system" || role === "developer"

const emptyTurn = (): Turn => ({ role: "user", thinking: [], content: [], calls: [], results: [] })

/** The vendor wants at least one turn: instructions that stand alone are what the user says. */
const onlySystem = (system: readonly Block[]): Conversation => {
  if (system.length === 0) throw refuse("messages", "'messages' hold nothing that could be answered")
  return { system: [], turns: [{ ...emptyTurn(), content: [...system] }] }
}

const spoken = (message: Message, kinds: ReadonlySet<string>, at: number): readonly Block[] =>
  blocksOf(message.content, kinds, `messages[${at}].content`, message.cache_control)

const addMessage = (
  turns: Turns,
  message: Message,
  at: number,
  names: ToolNames,
  context: Pick<ChatContext, "signatures" | "target">,
): void => {
  if (message.role === "user") turns.user(spoken(message, shown, at))
  else if (isSystem(message)) turns.user(instructions(message, at))
  else if (message.role === "assistant") addAssistant(turns, message, at, names, context)
  else if (message.role === "tool") {
    turns.result(text(message.tool_call_id) ?? "", spoken(message, shown, at), `messages[${at}].tool_call_id`)
  } else if (message.role === "function") {
    turns.result(functionId(text(message.name) ?? ""), spoken(message, shown, at), `messages[${at}].name`)
  } else throw refuse(`messages[${at}].role`, `A message of role '${String(message.role)}' is not supported`)
}

/** Later instructions keep their place: moved to the top they would mean something else, and spoil the cache. */
const instructions = (message: Message, at: number): readonly Block[] =>
  spoken(message, said, at).map(block => ({ ...block, text: `<system>\n${String(block.text)}\n</system>` }))

const addAssistant = (
  turns: Turns,
  message: Message,
  at: number,
  names: ToolNames,
  { signatures, target }: Pick<ChatContext, "signatures" | "target">,
): void => {
  if (isObject(message.audio)) {
    throw refuse(`messages[${at}].audio`, "Audio of earlier answers is not available to this model")
  }
  const calls = callsOf(message, at)
  const thinking = calls.flatMap(({ id }) => keptBlocks(signatures?.get(id), target.model))
  turns.assistant([...spoken(message, said, at), ...textBlocks(message.refusal)], thinking)
  for (const { id, name, input } of calls) turns.call(id, names.sent(name), input)
}

interface Call {
  readonly id: string
  readonly name: string
  readonly input: JsonObject
}

const callsOf = (message: Message, at: number): readonly Call[] => {
  const calls = list(message.tool_calls).map((call, index) => {
    const { id, function: told } = record(call)
    return callOf(text(id) ?? "", record(told), `messages[${at}].tool_calls[${index}]`)
  })
  if (!isObject(message.function_call)) return calls
  const name = text(message.function_call.name) ?? ""
  return [...calls, callOf(functionId(name), message.function_call, `messages[${at}].function_call`)]
}

/** The older form of a call has no id: its result names the function. */
const functionId = (name: string): string => `function_${name}`

const callOf = (id: string, told: JsonObject, param: string): Call => {
  const name = text(told.name)
  if (name === undefined) throw refuse(param, "A tool call needs the name of a function")
  return { id, name, input: argumentsIn(told.arguments) }
}

const checkPrefill = (turns: readonly Turn[], { rules }: Pick<ChatContext, "rules">): void => {
  if (turns.at(-1)?.role !== "assistant" || !rules.refuse?.includes("prefill")) return
  throw refuse("messages", "The last message must be of the user: this model does not continue an assistant's text")
}

// ---- the conversation as it is sent ----

/**
 * The assistant's first turn of the tool loop that is still open: since then the vendor has waited for results only.
 * `undefined` when the user has the word.
 */
export const openLoop = (turns: readonly Turn[]): number | undefined => {
  let at = turns.length - 1
  while (at > 0 && (turns[at]?.results.length ?? 0) > 0) at -= 2
  const first = at + 1
  return first < turns.length ? first : undefined
}

/** @param thinkingFrom the turn from which on kept thinking is sent back; absent: none is */
export const messagesOf = (turns: readonly Turn[], thinkingFrom: number | undefined): readonly Block[] =>
  turns.map((turn, at) => {
    const thinking = thinkingFrom !== undefined && at >= thinkingFrom ? turn.thinking : []
    const content = at === turns.length - 1 && turn.role === "assistant" ? trimmed(turn.content) : turn.content
    return { role: turn.role, content: [...turn.results, ...thinking, ...content, ...turn.calls] }
  })

/** The vendor refuses a text to be continued that ends in white space. */
const trimmed = (content: readonly Block[]): readonly Block[] => {
  const last = content.at(-1)
  if (last === undefined || typeof last.text !== "string") return content
  return [...content.slice(0, -1), { ...last, text: last.text.trimEnd() }]
}

/** One string, unless a client marked what is to be cached. */
export const systemOf = (blocks: readonly Block[]): string | readonly Block[] | undefined => {
  if (blocks.length === 0) return undefined
  return blocks.some(block => block.cache_control !== undefined) ? blocks : blocks.map(({ text }) => text).join("\n\n")
}
