/** Tool calls of the history and their results, in pairs. */

import { type ChatContext, type JsonObject, refuse } from "../../../../core/index.ts"
import { list, record, text } from "../../common/json.ts"
import type { MediaContext } from "./media.ts"
import { sentName, type ToolNames } from "./names.ts"
import { contentOf, type Part } from "./parts.ts"
import { argumentsOf, resultOf } from "./results.ts"
import { signatureFor } from "./signatures.ts"

export type Message = JsonObject

/** A message and its index in the request. */
export interface Placed {
  readonly message: Message
  readonly at: number
}

export interface HistoryContext extends Pick<ChatContext, "signatures" | "target"> {
  readonly names: ToolNames
  readonly media: MediaContext
  /** The model refuses a turn of tool calls without a thought signature. */
  readonly needsSignature: boolean
}

interface Call {
  /** As the client knows it; may be empty, or the same as another one's. */
  readonly id: string
  readonly name: string
  readonly told: JsonObject
  readonly arguments: unknown
}

/** The older form has no id: its result names the function. */
const functionId = (name: string): string => `function_${name}`

export const callsOf = ({ message, at }: Placed): readonly Call[] => {
  const param = `messages[${at}]`
  const calls = list(message.tool_calls).map((one, index) =>
    callOf(record(one), record(record(one).function), text(record(one).id), `${param}.tool_calls[${index}]`),
  )
  const legacy = record(message.function_call)
  if (legacy.name === undefined) return calls
  return [...calls, callOf({}, legacy, functionId(String(legacy.name)), `${param}.function_call`)]
}

const callOf = (told: JsonObject, called: JsonObject, id: string | undefined, param: string): Call => {
  const name = text(called.name)
  if (name === undefined) throw refuse(param, "A tool call needs the name of a function")
  return { id: id ?? "", name, told, arguments: called.arguments }
}

/** Only the first of parallel calls bears a signature. */
export const callParts = (calls: readonly Call[], context: HistoryContext): readonly Part[] =>
  calls.map((call, at) => {
    const signature = signatureFor(call.told, context, context.needsSignature && at === 0)
    return {
      functionCall: {
        ...idOf(call),
        name: sentName(context.names, call.name),
        args: argumentsOf(call.arguments),
      },
      ...(signature === undefined ? {} : { thoughtSignature: signature }),
    }
  })

const idOf = ({ id }: Call): { readonly id?: string } => (id === "" ? {} : { id })

/**
 * One part for each call, in the order of the calls; pictures that a tool returned follow behind them all.
 *
 * @param answers the tool messages behind the assistant's turn
 * @throws GatewayError (400) for a call without its result, and a result without its call
 */
export const resultParts = (
  calls: readonly Call[],
  answers: readonly Placed[],
  assistant: number,
  context: HistoryContext,
): readonly Part[] => {
  const open = [...answers]
  const found = calls.map(call => {
    const index = open.findIndex(({ message }) => answeredId(message) === call.id)
    if (index < 0) throw missing(call, assistant)
    return { call, answer: open.splice(index, 1)[0]! }
  })
  if (open[0] !== undefined) throw orphan(open[0])
  const results = found.map(({ call, answer }) => resultPart(call, answer, context))
  return [...results.map(({ response }) => response), ...results.flatMap(({ media }) => media)]
}

const answeredId = (message: Message): string =>
  message.role === "function" ? functionId(text(message.name) ?? "") : (text(message.tool_call_id) ?? "")

const missing = ({ id }: Call, assistant: number) =>
  refuse(
    `messages[${assistant}].tool_calls`,
    `Each tool call must be answered by a 'tool' message directly behind it; none answers '${id}'`,
  )

/** A result that belongs to no call of the preceding assistant message. */
export const orphan = ({ message, at }: Placed) =>
  refuse(
    `messages[${at}].tool_call_id`,
    `A '${String(message.role)}' message must answer a tool call of the assistant message before it`,
  )

const resultPart = (call: Call, { message, at }: Placed, { names, media }: HistoryContext) => {
  const content = contentOf(message.content, `messages[${at}].content`, media)
  const said = content.text.map(part => String(part.text)).join("\n")
  const response = { ...idOf(call), name: sentName(names, call.name), response: resultOf(said) }
  return { response: { functionResponse: response }, media: content.media }
}
