/** A gateway with simulators behind it, for the vendors' own clients: only their base URL and key are changed. */

import Anthropic from "@anthropic-ai/sdk"
import { GoogleGenAI } from "@google/genai"
import OpenAI from "openai"
import type { Test } from "tap"
import { type TestGateway, testGateway, testKey } from "../../core/testing.ts"
import { until } from "../fixtures/until.ts"

const priced = (type: string, vendor: string, name: string, price: object) => ({
  type,
  family: vendor,
  targets: [{ vendor, model: name }],
  price,
})

const tokens = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }

/** 1,000 micros for a token of input, 2,000 for one of output. */
const catalog = {
  models: {
    "gpt-4.1": priced("llm", "openai", "gpt-4.1", tokens),
    "text-embedding-3-small": priced("embedding", "openai", "text-embedding-3-small", { input: tokens.input }),
    "claude-sonnet-4-5": { ...priced("llm", "anthropic", "claude-sonnet-4-5", tokens), max_output: 64_000 },
    "gemini-2.5-flash": priced("llm", "google", "gemini-2.5-flash", tokens),
  },
}

const vendors = Object.fromEntries(
  ["openai", "anthropic", "google"].map(name => [name, { adapter: name, origin: "https://sandbox.invalid" }]),
)

const pipeline = ["metrics", "access-log", "edge", "body-size", "auth", "rate-limit", "model", "pricing"]

/** Paul's, who has no credits. */
export const poorKey = "tg_test_key_of_paul"

/** @param perMinute calls of the common bucket */
export const openGateway = async (t: Test, perMinute = 120): Promise<TestGateway> => {
  const limited = { "rate-limit": { common: { requests: perMinute, window: "60s" } } }
  const member = (credits: number, key: string) => ({ credits, keys: [key] })
  const gateway = await testGateway({
    catalog,
    gateway: {
      vendors,
      mounts: { "vendor-a": ["vendor-a"], "vendor-b": ["vendor-b"] },
      plugins: pipeline.map(name => (name === "rate-limit" ? limited : name)),
      bootstrap: {
        organisations: {
          acme: { gateway: true, models: "all", members: { alice: member(1_000, testKey), paul: member(0, poorKey) } },
        },
      },
    },
  })
  t.teardown(() => gateway.close())
  return gateway
}

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

export interface Choices {
  readonly key?: string
  readonly retries?: number
  /** Stands between the client and its sockets. */
  readonly fetch?: Fetch
  /** After the base URL. */
  readonly slash?: "" | "/"
}

const withFetch = (choices: Choices) => (choices.fetch === undefined ? {} : { fetch: choices.fetch })

export const openaiOf = ({ url }: TestGateway, choices: Choices = {}): OpenAI =>
  new OpenAI({
    apiKey: choices.key ?? testKey,
    baseURL: url + (choices.slash ?? ""),
    maxRetries: choices.retries ?? 0,
    ...withFetch(choices),
  })

/** The key goes as an auth token: as the vendor's own API key, the client would send it elsewhere as well. */
export const anthropicOf = ({ url }: TestGateway, choices: Choices = {}): Anthropic =>
  new Anthropic({
    authToken: choices.key ?? testKey,
    apiKey: null,
    baseURL: `${url}/vendor-a${choices.slash ?? ""}`,
    maxRetries: choices.retries ?? 0,
    ...withFetch(choices),
  })

export const googleOf = ({ url }: TestGateway, choices: Choices = {}): GoogleGenAI =>
  new GoogleGenAI({
    apiKey: choices.key ?? testKey,
    httpOptions: {
      baseUrl: `${url}/vendor-b${choices.slash ?? ""}`,
      ...(choices.retries === undefined ? {} : { retryOptions: { attempts: choices.retries + 1 } }),
    },
  })

/** Asks the simulated vendor for a fault in the first requests, so that only a client that tries again gets through. */
export const failingFirst = (times: number, fault: string): { readonly fetch: Fetch; asked(): number } => {
  let asked = 0
  return {
    asked: () => asked,
    fetch: (input, init) => {
      asked += 1
      const headers = new Headers(init?.headers)
      if (asked <= times) headers.set("x-sandbox-fault", fault)
      return fetch(input, { ...init, headers })
    },
  }
}

/** What alice has spent when nothing is held any more. */
export const spentAtRest = async (gateway: TestGateway, least = 1): Promise<number> => {
  await until(async () => {
    const { held, spent } = await gateway.balance()
    return held === 0 && spent >= least
  })
  return (await gateway.balance()).spent
}
