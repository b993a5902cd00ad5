/** Tools and how they may be chosen. */

import { type ChatRequest, isObject, isSet, type JsonObject, type Model, refuse } from "../../../../core/index.ts"
import { list, record, text } from "../../common/json.ts"
import type { Format } from "./format.ts"
import type { ToolNames } from "./names.ts"
import { type Block, marked } from "./parts.ts"
import { closedSchema, parametersSchema } from "./schema.ts"

export interface ToolPlan {
  readonly tools?: readonly Block[]
  readonly tool_choice?: Block
  /** The model must call some tool. */
  readonly forced: boolean
  /** The tool whose input is the content of the answer. */
  readonly answerTool?: string
}

/** How the client wants tools to be used; `only`: the functions that may be called, absent: all. */
interface Choice {
  readonly mode: "auto" | "none" | "required"
  readonly only?: readonly string[]
  readonly named?: true
}

export interface ToolContext {
  readonly names: ToolNames
  readonly format: Format
  readonly model: Model
  /** Names of the tools that the conversation has called, as they are sent. */
  readonly called: ReadonlySet<string>
}

/** @throws GatewayError (400) for tools that are no functions and for a choice that cannot be met */
export const toolPlan = (request: ChatRequest, context: ToolContext): ToolPlan => {
  const choice = choiceOf(request)
  const all = list(request.tools).map((tool, at) => functionOf(tool, at))
  checkChoice(choice, all, context.model)
  const tools = all
    .filter(({ name }) => choice.named || choice.only === undefined || choice.only.includes(name))
    .map(tool => toolOf(tool, context))
  if (context.format.by === "tool" && (choice.mode !== "required" || tools.length === 0)) {
    return withAnswerTool(tools, choice, context.format, context)
  }
  if (tools.length > 0) return plainPlan(tools, choice, request, context)
  return context.called.size > 0 ? remembered(context.called) : { forced: false }
}

const plainPlan = (
  tools: readonly Block[],
  { mode, only, named }: Choice,
  { parallel_tool_calls }: ChatRequest,
  { names }: ToolContext,
): ToolPlan => {
  if (mode === "none") return { tools, tool_choice: { type: "none" }, forced: false }
  const single = parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {}
  if (mode === "auto") return { tools, tool_choice: { type: "auto", ...single }, forced: false }
  const kind = named ? { type: "tool", name: names.sent(only?.[0] ?? "") } : { type: "any" }
  return { tools, tool_choice: { ...kind, ...single }, forced: true }
}

/** The answer is a tool's input; other tools may be called on the way to it. */
const withAnswerTool = (
  tools: readonly Block[],
  { mode }: Choice,
  { description, schema }: Format & { readonly by: "tool" },
  { names }: ToolContext,
): ToolPlan => {
  const name = names.unused("json")
  const isOnly = tools.length === 0 || mode === "none"
  return {
    tools: [...tools, { name, description, input_schema: schema }],
    tool_choice: { ...(isOnly ? { type: "tool", name } : { type: "any" }), disable_parallel_tool_use: true },
    forced: true,
    answerTool: name,
  }
}

/** A conversation that has called tools needs their definitions, although the client sends them no more. */
const remembered = (called: ReadonlySet<string>): ToolPlan => ({
  tools: [...called].map(name => ({ name, input_schema: parametersSchema(undefined) })),
  tool_choice: { type: "none" },
  forced: false,
})

// ---- one tool ----

interface FunctionTool {
  readonly name: string
  readonly told: JsonObject
  readonly marker: unknown
}

const functionOf = (tool: unknown, at: number): FunctionTool => {
  const { type, function: told, cache_control } = record(tool)
  if (type !== "function" || !isObject(told)) {
    throw refuse(`tools[${at}].type`, `Tools of type '${String(type)}' are not supported by this model`)
  }
  const name = text(told.name)
  if (name === undefined) throw refuse(`tools[${at}].function.name`, "A function needs a name")
  return { name, told, marker: cache_control ?? told.cache_control }
}

const toolOf = ({ name, told, marker }: FunctionTool, { names, model }: ToolContext): Block => {
  const description = text(told.description)
  const parameters = parametersSchema(told.parameters)
  // Only models with structured outputs can be held to a schema.
  const isStrict = told.strict === true && model.capabilities.includes("structured_output")
  const tool = {
    name: names.sent(name),
    ...(description === undefined ? {} : { description }),
    input_schema: isStrict ? closedSchema(parameters) : parameters,
    ...(isStrict ? { strict: true } : {}),
  }
  return marked(tool, marker)
}

// ---- the choice ----

const modes: ReadonlySet<unknown> = new Set(["auto", "none", "required"])

const choiceOf = ({ tool_choice: choice }: ChatRequest): Choice => {
  if (!isSet(choice)) return { mode: "auto" }
  if (modes.has(choice)) return { mode: choice as Choice["mode"] }
  const told = record(choice)
  const name = text(record(told.function).name)
  if (told.type === "function" && name !== undefined) return { mode: "required", only: [name], named: true }
  if (told.type === "allowed_tools") return allowed(record(told.allowed_tools))
  throw refuse("tool_choice", "'tool_choice' must be auto, none, required, or name functions of 'tools'")
}

const allowed = ({ mode, tools }: JsonObject): Choice => ({
  mode: mode === "required" ? "required" : "auto",
  only: list(tools).flatMap(tool => text(record(record(tool).function).name) ?? []),
})

const checkChoice = ({ mode, only }: Choice, tools: readonly FunctionTool[], model: Model): void => {
  const unknown = only?.find(name => !tools.some(tool => tool.name === name))
  if (unknown !== undefined) throw refuse("tool_choice", `'tool_choice' names '${unknown}', which is not in 'tools'`)
  if (mode !== "required") return
  if (tools.length === 0) throw refuse("tool_choice", "'tool_choice' needs 'tools'")
  if (model.rules.refuse?.includes("tool_choice")) {
    throw refuse("tool_choice", `Model '${model.name}' does not take a forced 'tool_choice'`)
  }
}
