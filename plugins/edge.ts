/** Refuses clients without a `User-Agent`, in the words that an edge network would use (specification 5.7). */

import type { Plugin } from "../core/index.ts"

interface Options {
  readonly require_user_agent: boolean
}

export default {
  name: "edge",
  api: 1,
  options: {
    type: "object",
    additionalProperties: false,
    properties: { require_user_agent: { type: "boolean", default: true } },
  },
  setup(host, { require_user_agent }) {
    if (!require_user_agent) return
    host.use({
      run(call, next) {
        if ((call.headers["user-agent"] ?? "").trim() !== "") return next()
        throw host.error("blocked", "error code: 1010", { text: true })
      },
    })
  },
} satisfies Plugin<Options>
