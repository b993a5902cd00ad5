/** Tools and how they may be chosen. */

import { type ChatRequest, isObject, isSet, type JsonObject, refuse } from "../../../../core/index.ts"
import { list, record, text } from "../../common/json.ts"
import type { Abilities } from "./abilities.ts"
import { withoutDialect } from "./format.ts"
import { sentName, type ToolNames } from "./names.ts"
import { type NodeCount, plainSchema } from "./schema.ts"

interface FunctionTool {
  readonly name: string
  readonly told: JsonObject
  readonly param: string
}

/** How the client wants tools to be used; `only`: the functions that may be called, absent: all. */
interface Choice {
  readonly mode: "AUTO" | "NONE" | "ANY"
  readonly only?: readonly string[]
}

/** @throws GatewayError (400) for tools that are no functions and for a choice that cannot be met */
export const toolsOf = (request: ChatRequest, names: ToolNames, { jsonSchema }: Abilities): JsonObject => {
  const tools = list(request.tools).map((tool, at) => functionOf(record(tool), at))
  const choice = choiceOf(request)
  checkChoice(choice, tools)
  // Names can be prescribed only to a model that must call something; else the others are not offered.
  const offered = choice.mode === "AUTO" ? tools.filter(({ name }) => choice.only?.includes(name) ?? true) : tools
  if (offered.length === 0) return {}
  const count = { nodes: 0 }
  return {
    tools: [{ functionDeclarations: offered.map(tool => declaration(tool, names, jsonSchema ? undefined : count)) }],
    ...(choice.mode === "AUTO" ? {} : { toolConfig: { functionCallingConfig: calling(choice, names) } }),
  }
}

const functionOf = ({ type, function: told }: JsonObject, at: number): FunctionTool => {
  if (type !== "function" || !isObject(told)) {
    throw refuse(`tools[${at}].type`, `Tools of type '${String(type)}' are not supported by this model`)
  }
  const name = text(told.name)
  if (name === undefined) throw refuse(`tools[${at}].function.name`, "A function needs a name")
  return { name, told, param: `tools[${at}].function.parameters` }
}

/** @param count of the nodes of plain schemas; absent: JSON Schema stays as it is */
const declaration = ({ name, told, param }: FunctionTool, names: ToolNames, count?: NodeCount): JsonObject => {
  const description = text(told.description)
  return {
    name: sentName(names, name),
    ...(description === undefined ? {} : { description }),
    ...parametersOf(record(told.parameters), param, count),
  }
}

const parametersOf = (parameters: JsonObject, param: string, count: NodeCount | undefined): JsonObject => {
  if (Object.keys(parameters).length === 0) return {}
  if (count === undefined) return { parametersJsonSchema: { type: "object", ...withoutDialect(parameters) } }
  const schema = plainSchema({ type: "object", ...parameters }, param, count)
  // An object without properties is refused; a function without parameters is not.
  return schema.type === "object" && schema.properties === undefined ? {} : { parameters: schema }
}

const calling = ({ mode, only }: Choice, names: ToolNames): JsonObject => ({
  mode,
  ...(only === undefined ? {} : { allowedFunctionNames: only.map(name => sentName(names, name)) }),
})

// ---- the choice ----

const modes: ReadonlyMap<unknown, Choice["mode"]> = new Map([
  ["auto", "AUTO"],
  ["none", "NONE"],
  ["required", "ANY"],
] as const)

const choiceOf = ({ tool_choice: choice }: ChatRequest): Choice => {
  if (!isSet(choice)) return { mode: "AUTO" }
  const mode = modes.get(choice)
  if (mode !== undefined) return { mode }
  const told = record(choice)
  const name = text(record(told.function).name)
  if (told.type === "function" && name !== undefined) return { mode: "ANY", only: [name] }
  if (told.type === "allowed_tools") return allowed(record(told.allowed_tools))
  throw refuse("tool_choice", "'tool_choice' must be auto, none, required, or name functions of 'tools'")
}

const allowed = ({ mode, tools }: JsonObject): Choice => ({
  mode: mode === "required" ? "ANY" : "AUTO",
  only: list(tools).flatMap(tool => text(record(record(tool).function).name) ?? []),
})

const checkChoice = ({ mode, only }: Choice, tools: readonly FunctionTool[]): void => {
  const stranger = only?.find(name => !tools.some(tool => tool.name === name))
  if (stranger !== undefined) throw refuse("tool_choice", `'tool_choice' names '${stranger}', which is not in 'tools'`)
  if (mode === "ANY" && tools.length === 0) throw refuse("tool_choice", "'tool_choice' needs 'tools'")
}
