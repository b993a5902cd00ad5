/** The manner of OpenAI and of the hosts that speak its protocol. */

import { record, records, text, textOf } from "./json.ts"
import { type Manner, Refusal, type RefusalKind } from "./wire.ts"

const errors: Readonly<Record<RefusalKind, { status: number; type: string; code: string | null }>> = {
  unauthenticated: { status: 401, type: "invalid_request_error", code: "invalid_api_key" },
  bad_json: { status: 400, type: "invalid_request_error", code: "invalid_json" },
  invalid: { status: 400, type: "invalid_request_error", code: null },
  not_found: { status: 404, type: "invalid_request_error", code: null },
  rate_limited: { status: 429, type: "requests", code: "rate_limit_exceeded" },
  server: { status: 500, type: "server_error", code: null },
}

export const openai: Manner = {
  key: headers => /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? text(headers["api-key"]),
  error({ kind, message, param, code }) {
    const told = errors[kind]
    return { status: told.status, body: { error: { message, type: told.type, param, code: code ?? told.code } } }
  },
  fields: requestId => ({
    "x-request-id": requestId,
    "openai-version": "2020-10-01",
    "openai-processing-ms": "12",
    "x-ratelimit-limit-requests": "10000",
    "x-ratelimit-remaining-requests": "9999",
    "x-ratelimit-reset-requests": "6ms",
  }),
}

/** Models that reason on their own and take no limit but max_completion_tokens, no temperature but 1. */
export const alwaysReasons = (model: string): boolean => /^(?:o[134]|gpt-5(?!-chat|\.))/.test(model)

/** From these on, effort and tools together are refused by the chat endpoint. */
export const refusesEffortWithTools = (model: string): boolean => /^gpt-(?:5\.[4-9]|[6-9])/.test(model)

/** This vendor's own models, as opposed to those of hosts that borrowed its protocol. */
export const isOwnModel = (model: string): boolean => /^(?:gpt-|o[134]|chatgpt|codex)/.test(model)

/** The last text of the user, and what a tool said after it. */
export const conversationOf = (
  messages: unknown,
  toolText: (message: Readonly<Record<string, unknown>>) => string | undefined,
): { question: string; toolResult: string | undefined } => {
  const all = records(messages)
  const asked = all.findLast(message => message.role === "user")
  const last = all.at(-1)
  return { question: textOf(asked?.content), toolResult: last === undefined ? undefined : toolText(last) }
}

/** `none`, a named function, or free. `required` is free here: a given tool is called anyway. */
export const toolChoiceOf = (choice: unknown): "free" | "none" | { name: string } => {
  if (choice === "none") return "none"
  const name = text(record(choice).name) ?? text(record(record(choice).function).name)
  return name === undefined ? "free" : { name }
}

export const invalid = (message: string, param: string, code?: string): Refusal =>
  new Refusal("invalid", message, code === undefined ? { param } : { param, code })
