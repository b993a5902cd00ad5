/** The OpenAI wire: chat completions, Responses, embeddings, moderations. Many other vendors speak it too. */

import type { Adapter, Api, Dialect, JsonSchema } from "../../../core/index.ts"
import { apiPathOption } from "../common/answers.ts"
import { chatSpoke } from "./chat.ts"
import { ChatMeter, chatSign } from "./chat-meter.ts"
import { openaiDialect, responsesDialect } from "./dialect.ts"
import { fault } from "./faults.ts"
import { leaveOutOption } from "./left-out.ts"
import {
  decisions,
  decisionsRelay,
  embeddings,
  embeddingsSpoke,
  hostedRerank,
  moderationSpoke,
  moderations,
  rerank,
} from "./others.ts"
import { ResponsesMeter, responsesSign } from "./responses.ts"

const chat: Api = { usage: () => new ChatMeter(), sign: chatSign }

const responses: Api = { usage: () => new ResponsesMeter(), sign: responsesSign }

/** What hosts of this wire differ in: its path, the role of instructions, the name of the limit, fields they refuse. */
const options: JsonSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    api_path: apiPathOption,
    developer: { type: "boolean" },
    max_tokens_as: { enum: ["max_tokens", "max_completion_tokens"] },
    leave_out: leaveOutOption,
  },
}

/** Registered beside the adapter's own dialect. */
export const dialects: readonly Dialect[] = [responsesDialect]

export default {
  name: "openai",
  dialect: openaiDialect,
  fields: {
    toVendor: ["content-type", "accept", "openai-beta"],
    toClient: [
      "content-type",
      "retry-after",
      "retry-after-ms",
      "x-should-retry",
      "openai-processing-ms",
      "openai-version",
      "x-ratelimit-limit-*",
      "x-ratelimit-remaining-*",
      "x-ratelimit-reset-*",
    ],
    query: [],
  },
  options,
  authorise: secret => ({ authorization: `Bearer ${secret.reveal()}` }),
  apis: { chat, responses, embeddings, rerank, moderations, decisions },
  fault,
  chat: chatSpoke,
  embeddings: embeddingsSpoke,
  rerank: hostedRerank,
  moderation: moderationSpoke,
  decisions: decisionsRelay,
} satisfies Adapter
