/** Pauses the service: every call is answered with 503 until the configuration says otherwise. */

import { durationSchema, type Plugin, parseDuration, retryAfter } from "../core/index.ts"

interface Options {
  readonly on: boolean
  /** What clients are told to wait. */
  readonly retry_after: string
}

export default {
  name: "maintenance",
  api: 1,
  options: {
    type: "object",
    additionalProperties: false,
    properties: { on: { type: "boolean", default: false }, retry_after: { ...durationSchema, default: "60s" } },
  },
  setup(host, { on, retry_after }) {
    if (!on) return
    const headers = retryAfter(parseDuration(retry_after))
    host.use({
      async run() {
        throw host.error("maintenance", "Service is temporarily stopped for maintenance", { headers })
      },
    })
  },
} satisfies Plugin<Options>
