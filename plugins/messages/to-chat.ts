/** A messages request as the hub's chat request, for models of other families that are offered on this route. */

import {
  type ChatRequest,
  GatewayError,
  invalidInput,
  isObject,
  type JsonObject,
  type Model,
} from "../../core/index.ts"

const stopsMax = 4

/** @throws GatewayError `invalid_request` (400) or `validation_failed` (422): what the hub cannot say */
export const chatRequest = (request: JsonObject, model: Model): ChatRequest => {
  if (!Array.isArray(request.messages))
    throw invalidInput(["body", "messages"], "Input should be a valid list", "list_type")
  const messages = [...systemMessages(request.system), ...request.messages.flatMap(turnMessages)]
  return withoutRefused(
    {
      model: model.name,
      messages,
      ...limits(request, model),
      ...toolFields(request),
      ...thinking(request),
      ...format(request),
    },
    model,
  )
}

const refuse = (param: string, message: string): GatewayError => new GatewayError("invalid_request", message, { param })

const defined = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))

const limits = (request: JsonObject, { maxOutput = Number.POSITIVE_INFINITY }: Model): JsonObject =>
  defined({
    stream: request.stream === true ? true : undefined,
    // Command-line clients ask for as much as their own family gives.
    max_tokens: typeof request.max_tokens === "number" ? Math.min(request.max_tokens, maxOutput) : undefined,
    temperature: request.temperature,
    top_p: request.top_p,
    stop:
      Array.isArray(request.stop_sequences) && request.stop_sequences.length > 0
        ? request.stop_sequences.slice(0, stopsMax)
        : undefined,
  })

/** Clients of this family cannot know what a model of another refuses: it is left out. */
const withoutRefused = (request: ChatRequest, { rules }: Model): ChatRequest => {
  const { temperature, reasoning_effort: effort } = request
  const refused = new Set(rules.refuse ?? [])
  if (typeof temperature === "number" && rules.temperature?.includes(temperature) === false) refused.add("temperature")
  if (typeof effort === "string" && rules.efforts?.includes(effort) === false) refused.add("reasoning_effort")
  return Object.fromEntries(Object.entries(request).filter(([name]) => !refused.has(name))) as ChatRequest
}

// ---- turns ----

const blocksOf = (content: unknown): readonly JsonObject[] =>
  typeof content === "string"
    ? [{ type: "text", text: content }]
    : Array.isArray(content)
      ? content.filter(isObject)
      : []

const textOf = (blocks: readonly JsonObject[]): string =>
  blocks.flatMap(block => (block.type === "text" && typeof block.text === "string" ? [block.text] : [])).join("\n\n")

const systemMessages = (system: unknown): readonly JsonObject[] => {
  const text = textOf(blocksOf(system))
  return text === "" ? [] : [{ role: "system", content: text }]
}

const turnMessages = (turn: unknown): readonly JsonObject[] => {
  const { role, content } = isObject(turn) ? turn : {}
  if (role === "assistant") return assistantMessages(blocksOf(content))
  if (role === "system") return systemMessages(content)
  if (role === "user") return userMessages(blocksOf(content))
  throw invalidInput(
    ["body", "messages"],
    "Each message needs the role 'user', 'assistant' or 'system'",
    "literal_error",
    role,
  )
}

/** Results stand before the rest of the turn, each in a message of its own; their images follow them. */
const userMessages = (blocks: readonly JsonObject[]): readonly JsonObject[] => {
  const results = blocks.filter(block => block.type === "tool_result")
  const pictures = results.flatMap(({ content }) => blocksOf(content).filter(block => block.type === "image"))
  const others = blocks.filter(block => block.type !== "tool_result")
  const parts = [...pictures, ...others].map(partOf)
  return [...results.map(toolMessage), ...(parts.length === 0 ? [] : [{ role: "user", content: plainest(parts) }])]
}

const toolMessage = ({ tool_use_id, content, is_error }: JsonObject): JsonObject => {
  const text = textOf(blocksOf(content)) || "(no output)"
  return { role: "tool", tool_call_id: tool_use_id, content: is_error === true ? `Error: ${text}` : text }
}

/** One text is written as text: every vendor takes that. */
const plainest = (parts: readonly JsonObject[]): unknown => {
  const [first, ...more] = parts
  return more.length === 0 && first?.type === "text" ? first.text : parts
}

const partOf = (block: JsonObject): JsonObject => {
  const source = isObject(block.source) ? block.source : {}
  if (block.type === "text") return { type: "text", text: block.text }
  if (block.type === "image") return { type: "image_url", image_url: { url: urlOf(source) } }
  if (block.type === "document" && source.type === "text") return { type: "text", text: source.data }
  if (block.type === "document" && source.type === "base64") {
    const filename = typeof block.title === "string" ? block.title : "document.pdf"
    return { type: "file", file: { filename, file_data: urlOf(source) } }
  }
  throw refuse("messages", `This model takes no '${String(block.type)}' block of this kind`)
}

const urlOf = (source: JsonObject): string =>
  source.type === "url" ? String(source.url) : `data:${String(source.media_type)};base64,${String(source.data)}`

/** Thoughts and the results of the family's own server tools mean nothing to another model. */
const assistantMessages = (blocks: readonly JsonObject[]): readonly JsonObject[] => {
  const text = textOf(blocks)
  const calls = blocks
    .filter(block => block.type === "tool_use")
    .map(({ id, name, input }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(input ?? {}) },
    }))
  if (text === "" && calls.length === 0) return []
  return [
    { role: "assistant", content: text === "" ? null : text, ...(calls.length === 0 ? {} : { tool_calls: calls }) },
  ]
}

// ---- tools, thinking, format ----

const choices: Readonly<Record<string, string>> = { auto: "auto", any: "required", none: "none" }

const toolFields = ({ tools, tool_choice }: JsonObject): JsonObject => {
  if (!Array.isArray(tools) || tools.length === 0) return {}
  const choice = isObject(tool_choice) ? tool_choice : undefined
  return defined({
    tools: tools.filter(isObject).map(functionTool),
    tool_choice:
      choice?.type === "tool" ? { type: "function", function: { name: choice.name } } : choices[String(choice?.type)],
    parallel_tool_calls: choice?.disable_parallel_tool_use === true ? false : undefined,
  })
}

const functionTool = ({ type, name, description, input_schema }: JsonObject): JsonObject => {
  if (type !== undefined && type !== null && type !== "custom")
    throw refuse("tools", `This model has no tool '${String(type)}'`)
  return { type: "function", function: defined({ name, description, parameters: input_schema }) }
}

/** The most thinking tokens that still are this effort (specification 4.2). */
const steps: readonly (readonly [most: number, effort: string])[] = [
  [2_048, "low"],
  [16_384, "medium"],
]

const thinking = ({ thinking, output_config }: JsonObject): JsonObject => {
  const { type, budget_tokens } = isObject(thinking) ? thinking : {}
  if (type === "enabled" && typeof budget_tokens === "number") {
    return { reasoning_effort: steps.find(([most]) => budget_tokens <= most)?.[1] ?? "high" }
  }
  const effort = isObject(output_config) ? output_config.effort : undefined
  if (type === "disabled" || effort === undefined || effort === null) return {}
  return { reasoning_effort: effort === "max" ? "high" : effort }
}

const format = ({ output_config }: JsonObject): JsonObject => {
  const given = isObject(output_config) ? output_config.format : undefined
  if (!isObject(given) || given.type !== "json_schema") return {}
  return {
    response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: given.schema } },
  }
}
