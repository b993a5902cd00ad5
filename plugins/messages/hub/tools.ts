/** Tools of a Messages request as functions of chat. */

import { isObject, type JsonObject, list, record, refuse, text } from "../../../core/index.ts"
import { isStrict } from "./strict.ts"

export interface ChatTools {
  readonly tools?: readonly JsonObject[]
  readonly tool_choice?: unknown
  readonly parallel_tool_calls?: false
}

/** @throws GatewayError (400) for tools that only the family's own vendor runs, and for an unknown choice */
export const chatTools = (request: JsonObject): ChatTools => {
  const tools = list(request.tools).map((tool, at) => functionOf(record(tool), `tools[${at}]`))
  const choice = record(request.tool_choice)
  if (tools.length === 0) {
    if (forced.has(choice.type)) throw refuse("tool_choice", "'tool_choice' needs 'tools' to choose from")
    return {}
  }
  return {
    tools,
    ...(isObject(request.tool_choice) ? { tool_choice: choiceOf(choice) } : {}),
    // Some vendors refuse the word: it is said only when a client says it.
    ...(choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}),
  }
}

const functionOf = ({ type, name, description, input_schema, strict }: JsonObject, param: string): JsonObject => {
  if (type !== undefined && type !== null && type !== "custom") {
    throw refuse(`${param}.type`, `The tool '${String(type)}' is not offered by this model`)
  }
  if (text(name) === undefined) throw refuse(`${param}.name`, "A tool needs a name")
  return {
    type: "function",
    function: {
      name,
      ...(text(description) === undefined ? {} : { description }),
      parameters: isObject(input_schema) ? input_schema : { type: "object", properties: {} },
      ...(strict === true && isStrict(input_schema) ? { strict } : {}),
    },
  }
}

const forced: ReadonlySet<unknown> = new Set(["any", "tool"])
const modes: Readonly<Record<string, string>> = { auto: "auto", any: "required", none: "none" }

const choiceOf = ({ type, name }: JsonObject): unknown => {
  const mode = text(type) ?? ""
  if (mode === "tool" && text(name) !== undefined) return { type: "function", function: { name } }
  if (Object.hasOwn(modes, mode)) return modes[mode]
  throw refuse("tool_choice", "'tool_choice' must be of type auto, any, none, or tool with a name")
}
