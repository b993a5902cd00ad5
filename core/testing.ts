/** A whole gateway for tests: real sockets, the embedded store in memory, the sandbox or the test's own vendors. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Gateway, startGateway } from "./gateway.ts"
import { keyDigest } from "./kit/credentials.ts"
import type { AnyPlugin } from "./loader.ts"
import { createLog } from "./observe/log.ts"
import type { Clock } from "./plugin.ts"
import type { Balance } from "./state/store.ts"

export { testClock } from "./observe/clock.ts"

type Tree = Readonly<Record<string, unknown>>

export interface TestGatewayOptions {
  /** Top-level keys of gateway.yaml that differ from the defaults below; a key is replaced whole. */
  readonly gateway?: Tree
  /** The whole catalog.yaml. */
  readonly catalog?: Tree
  /** Plugins under test, at the end of the pipeline. */
  readonly plugins?: readonly AnyPlugin[]
  readonly clock?: Clock
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly random?: () => number
}

export interface TestGateway {
  readonly gateway: Gateway
  /** The base URL of clients: ends in `/v1/gateway`. */
  readonly url: string
  /** Alice's key; she has 1,000 credits unless `bootstrap` says otherwise. */
  readonly key: string
  /** A call with Alice's key; `path` is relative to the base URL, an object body is sent as JSON. */
  call(path: string, body?: unknown, init?: RequestInit): Promise<Response>
  balance(): Promise<Balance>
  /** The log so far, parsed. */
  readonly lines: readonly Tree[]
  /** The text of `/metrics`. */
  metrics(): Promise<string>
  /** Writes new files and reloads: the reasons of a refusal, none when it serves. */
  reload(change: { readonly gateway?: Tree; readonly catalog?: Tree }): Promise<readonly string[]>
  close(): Promise<void>
}

/** The key of `alice` of `acme`, whom the default configuration creates. */
export const testKey = "tg_test_key_of_alice_000000000000000000000000"

const pipeline: readonly unknown[] = [
  "metrics",
  "access-log",
  "edge",
  { maintenance: { on: false } },
  "body-size",
  "auth",
  "rate-limit",
  "model",
  "pricing",
]

const defaultGateway: Tree = {
  listen: { host: "127.0.0.1", port: 0 },
  ops: { host: "127.0.0.1", port: 0 },
  store: { kind: "sqlite", path: ":memory:", durability: "process" },
  sandbox: true,
  shutdown: "5s",
  catalog: "./catalog.yaml",
  vendors: { openai: { adapter: "openai", origin: "https://sandbox.invalid", secrets: [] } },
  plugins: pipeline,
  endpoints: "all",
  bootstrap: {
    organisations: {
      acme: {
        gateway: true,
        models: "all",
        members: { alice: { credits: 1_000, keys: [`sha256:${keyDigest(testKey)}`] } },
      },
    },
  },
}

/** 1,000 credits per million input tokens, 2,000 output: 1,000 and 2,000 micros a token. */
const defaultCatalog: Tree = {
  models: {
    "test-chat": {
      type: "llm",
      family: "openai",
      targets: [{ vendor: "openai", model: "test-chat" }],
      max_output: 4096,
      price: { input: "1000 per 1M tokens", output: "2000 per 1M tokens" },
    },
  },
}

/**
 * Starts a gateway on free ports; its files lie in a folder of its own, which `close` takes away.
 *
 * @throws ConfigError when it would not start from this configuration
 */
export const testGateway = async (options: TestGatewayOptions = {}): Promise<TestGateway> => {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-test-"))
  const write = async (name: string, tree: Tree): Promise<void> =>
    writeFile(join(folder, name), JSON.stringify(tree, null, 2))
  await write("gateway.yaml", { ...defaultGateway, ...options.gateway })
  await write("catalog.yaml", options.catalog ?? defaultCatalog)
  const lines: Tree[] = []
  const log = createLog({ level: "debug", destination: { write: line => void lines.push(JSON.parse(line) as Tree) } })
  const gateway = await startGateway({
    file: join(folder, "gateway.yaml"),
    log,
    sandboxPauseMs: 0,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.random === undefined ? {} : { random: options.random }),
    ...(options.plugins === undefined ? {} : { plugins: options.plugins }),
  }).catch(async error => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  const url = gateway.url + gateway.config.basePath
  return {
    gateway,
    url,
    key: testKey,
    lines,
    call: (path, body, init = {}) => fetch(url + path, requestInit(body, init)),
    balance: () => gateway.parts.ledger.balance({ organisation: "acme", member: "alice" }),
    metrics: async () => (await fetch(`${gateway.opsUrl}/metrics`)).text(),
    reload: async change => {
      if (change.gateway !== undefined)
        await write("gateway.yaml", { ...defaultGateway, ...options.gateway, ...change.gateway })
      if (change.catalog !== undefined) await write("catalog.yaml", change.catalog)
      return gateway.reload()
    },
    close: async () => {
      await gateway.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const requestInit = (body: unknown, init: RequestInit): RequestInit => {
  const headers = new Headers(init.headers)
  if (!headers.has("authorization") && !headers.has("x-api-key")) headers.set("authorization", `Bearer ${testKey}`)
  if (body === undefined) return { ...init, headers }
  if (!headers.has("content-type")) headers.set("content-type", "application/json")
  const sent = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)
  return { method: "POST", ...init, headers, body: sent as NonNullable<RequestInit["body"]> }
}
