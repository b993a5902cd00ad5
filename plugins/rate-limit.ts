/** Requests per member in exact sliding windows, by the bucket that the route names (specification 8). */

import {
  type Call,
  durationSchema,
  type Plugin,
  parseDuration,
  retryAfter,
  type WindowAnswer,
  type WindowLimit,
} from "../core/index.ts"

interface Bucket {
  readonly requests: number
  readonly window: string
}
type Options = Readonly<Record<string, Bucket>>

const bucketSchema = {
  type: "object",
  additionalProperties: false,
  required: ["requests", "window"],
  properties: { requests: { type: "integer", minimum: 1, maximum: 1_000_000 }, window: durationSchema },
}

export default {
  name: "rate-limit",
  api: 1,
  options: {
    type: "object",
    propertyNames: { pattern: "^[a-z][a-z0-9-]*$" },
    properties: {
      common: { ...bucketSchema, default: { requests: 120, window: "60s" } },
      polling: { ...bucketSchema, default: { requests: 300, window: "60s" } },
      chatbot: { ...bucketSchema, default: { requests: 30, window: "60s" } },
    },
    additionalProperties: bucketSchema, // other buckets, for routes that name them
  },
  setup(host, options) {
    const refused = host.metrics.product("rate_limited_total")
    const buckets = new Map(
      Object.entries(options).map(([name, { requests, window }]) => [
        name,
        {
          limit: { requests, windowMs: parseDuration(window) } satisfies WindowLimit,
          text: String(requests),
          words: `${requests} requests of a member in any ${window}`,
          refused: refused.child(name),
        },
      ]),
    )
    host.use({
      on: ({ access, limit, path }) => {
        if (access !== "key" || limit === "none") return false // without a key there is no member to count for
        if (!buckets.has(limit)) throw new Error(`the route ${path} names the bucket ${limit}: rate-limit has none`)
        return true
      },
      needs: ["principal"],
      bounds: ({ limit }) => `${buckets.get(limit)!.words} (bucket ${limit})`,
      async run(call, next) {
        const bucket = buckets.get(call.route.limit)!
        const answer = await host.store.windows.hit(call.route.limit, call.get("principal"), bucket.limit)
        tell(call, bucket.text, answer)
        if (answer.allowed) return next()
        bucket.refused.add()
        throw host.error("rate_limited", "Rate limit exceeded", {
          headers: retryAfter(answer.retryAfterMs),
          reason: "rate_limit_exceeded",
        })
      },
    })
  },
} satisfies Plugin<Options>

const tell = (call: Call, limit: string, { remaining, resetMs }: WindowAnswer): void => {
  call.header("ratelimit-limit", limit)
  call.header("ratelimit-remaining", String(remaining))
  call.header("ratelimit-reset", String(Math.ceil(resetMs / 1000)))
}
