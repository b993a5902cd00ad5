/** The Messages wire. */

import type { Adapter, Api } from "../../../core/index.ts"
import { unmetered } from "../common/whole-meter.ts"
import { chatSpoke } from "./chat/index.ts"
import { anthropicDialect } from "./dialect.ts"
import { fault } from "./faults.ts"
import { MessagesMeter, messagesSign } from "./meter.ts"

const messages: Api = { usage: () => new MessagesMeter(), sign: messagesSign }

export default {
  name: "anthropic",
  dialect: anthropicDialect,
  fields: {
    toVendor: [
      "content-type",
      "accept",
      "anthropic-version",
      "anthropic-beta",
      "anthropic-dangerous-direct-browser-access",
    ],
    toClient: [
      "content-type",
      "request-id",
      "retry-after",
      "x-should-retry",
      "anthropic-ratelimit-*",
      "anthropic-priority-*",
      "anthropic-fast-*",
    ],
    query: ["beta"],
  },
  // Both SDK generations are answered: with the key here, the vendor looks at no other field.
  authorise: secret => ({ "x-api-key": secret.reveal() }),
  apis: { messages, count_tokens: unmetered },
  fault,
  chat: chatSpoke,
  /** The vendor refuses a call without a version; newer ones forbid fields that older clients send. */
  defaults: { "anthropic-version": "2023-06-01" },
} satisfies Adapter
