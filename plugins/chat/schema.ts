/** What a chat completion request must look like: types by schema (422), values by rule (400). */

import { GatewayError, isObject, type JsonSchema } from "../../core/index.ts"

const nullable = (type: string) => ({ type: [type, "null"] })

const message = {
  type: "object",
  required: ["role"],
  properties: {
    role: { enum: ["system", "developer", "user", "assistant", "tool", "function"] },
    content: { type: ["string", "array", "null"] },
    tool_calls: { type: ["array", "null"], items: { type: "object" } },
  },
  // An assistant that only called tools said nothing.
  if: { properties: { role: { const: "assistant" } } },
  else: { required: ["content"] },
}

/** Fields that are not named here go to the vendor as they are. */
export const chatSchema = {
  type: "object",
  required: ["model", "messages"],
  properties: {
    model: { type: "string" },
    messages: { type: "array", minItems: 1, items: message },
    stream: nullable("boolean"),
    stream_options: { type: ["object", "null"], properties: { include_usage: nullable("boolean") } },
    temperature: nullable("number"),
    top_p: nullable("number"),
    top_k: nullable("integer"),
    n: nullable("integer"),
    max_tokens: nullable("integer"),
    max_completion_tokens: nullable("integer"),
    stop: { type: ["string", "array", "null"], items: { type: "string" } },
    tools: { type: ["array", "null"], items: { type: "object" } },
    tool_choice: { type: ["string", "object", "null"] },
    response_format: { type: ["object", "null"] },
    reasoning_effort: nullable("string"),
    thinking_budget: nullable("integer"),
    thinking_level: nullable("string"),
    service_tier: nullable("string"),
  },
} as const satisfies JsonSchema

/** One rule of the specification's table: what is wrong with a value, or nothing. `null` means "not sent". */
type Rule = (value: unknown) => string | undefined

const between =
  (least: number, most: number): Rule =>
  value =>
    (value as number) >= least && (value as number) <= most ? undefined : `must be between ${least} and ${most}`

const atLeastOne: Rule = value => ((value as number) >= 1 ? undefined : "must be at least 1")

const rules: Readonly<Record<string, Rule>> = {
  top_p: between(0, 1),
  n: atLeastOne,
  max_tokens: atLeastOne,
  max_completion_tokens: atLeastOne,
  tool_choice: value =>
    typeof value === "string" && !["auto", "none", "required"].includes(value)
      ? "must be 'auto', 'none', 'required' or an object that names a function"
      : undefined,
  response_format: value => formatProblem(value as Readonly<Record<string, unknown>>),
}

const formatProblem = ({ type, json_schema }: Readonly<Record<string, unknown>>): string | undefined => {
  if (type !== "json_schema") return undefined
  if (!isObject(json_schema) || typeof json_schema.name !== "string")
    return "needs json_schema with a name and a schema"
  if (json_schema.strict !== true) return undefined
  const isClosed = isObject(json_schema.schema) && json_schema.schema.additionalProperties === false
  return isClosed ? undefined : "with strict: true needs a schema with additionalProperties: false"
}

/**
 * What depends on the model is checked by `rules.ts`.
 *
 * @throws GatewayError `invalid_request` (400) for the first value that breaks a rule
 */
export const checkValues = (request: Readonly<Record<string, unknown>>): void => {
  for (const [name, rule] of Object.entries(rules)) {
    const value = Object.hasOwn(request, name) ? request[name] : undefined
    const problem = value === undefined || value === null ? undefined : rule(value)
    if (problem !== undefined) {
      throw new GatewayError("invalid_request", `${name} ${problem}`, { param: name, reason: "invalid_value" })
    }
  }
}
