/** The gateway that is fuzzed: every text route, simulators behind it, limits out of the way. */

import { hash } from "node:crypto"
import { type TestGateway, type TestGatewayOptions, testGateway, testKey } from "../../core/testing.ts"

const tokens = { input: "1 per 1M tokens", output: "1 per 1M tokens" }
const model = (type: string, vendor: string, name: string, more: object = {}) => ({
  type,
  family: vendor,
  targets: [{ vendor, model: name }],
  price: tokens,
  ...more,
})
const flat = { price: { requests: "1 per 1K requests" } }

const catalog = {
  models: {
    gpt: model("llm", "openai", "gpt-4.1", { messages: true }),
    claude: model("llm", "anthropic", "claude-sonnet-4-5", { max_output: 4096 }),
    gemini: model("llm", "google", "gemini-2.5-flash", { messages: true }),
    vectors: model("embedding", "openai", "text-embedding-3-small", { price: { input: tokens.input } }),
    guard: model("guard", "openai", "omni-moderation-latest", flat),
    rerank: model("rerank", "cohere", "rerank-v3.5", flat),
  },
}

export const names = ["openai", "anthropic", "google", "cohere"] as const

const most = { requests: 1_000_000, window: "60s" }
const pipeline = [
  "metrics",
  "access-log",
  "edge",
  "body-size",
  "auth",
  { "rate-limit": { common: most } },
  "model",
  { pricing: { reservations: most } },
]

/** @param origins of the vendors; the simulators when absent */
export const openTarget = (
  origins?: Readonly<Record<string, string>>,
  options: TestGatewayOptions = {},
): Promise<TestGateway> =>
  testGateway({
    catalog,
    env: { VENDOR_KEY: "vendor-secret" },
    ...options,
    gateway: {
      plugins: pipeline,
      mounts: { "vendor-a": ["vendor-a"], "vendor-b": ["vendor-b"], "vendor-c": ["vendor-c"] },
      sandbox: origins === undefined,
      vendors: Object.fromEntries(
        names.map(name => [
          name,
          {
            adapter: name,
            origin: origins?.[name] ?? "https://sandbox.invalid",
            ...(origins !== undefined && { secrets: [{ env: "VENDOR_KEY", name: "first" }] }),
          },
        ]),
      ),
      bootstrap: {
        organisations: {
          acme: {
            gateway: true,
            models: "all",
            members: { alice: { credits: 1_000_000_000, keys: [`sha256:${hash("sha256", testKey)}`] } },
          },
        },
      },
    },
  })
