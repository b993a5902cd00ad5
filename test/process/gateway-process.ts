/** A gateway as operators run it: a process of its own, told by signals what to do, and ended by its id. */

import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { root } from "../fixtures/sources.ts"

export type Tree = Readonly<Record<string, unknown>>

/** A folder with gateway.yaml and catalog.yaml (JSON is YAML), removed by `remove`. */
export interface Site {
  readonly folder: string
  readonly file: string
  write(change: { readonly gateway?: Tree; readonly catalog?: Tree }): void
  remove(): void
}

export interface GatewayProcess {
  readonly child: ChildProcess
  /** Ends in the base path. */
  readonly url: string
  readonly ops: string
  readonly pid: number
  /** The last lines of its standard output, without those of the access log. */
  readonly lines: readonly string[]
  /** The lines of its log that are errors. */
  readonly complaints: readonly string[]
  /** Its standard error so far. */
  errors(): string
  /** The exit code, `null` when a signal ended it. */
  readonly ended: Promise<number | null>
  signal(name: NodeJS.Signals): void
  /** SIGKILL, and the wait for its end. */
  kill(): Promise<void>
}

export const memberKey = (number: number): string => `tg_process_test_key_${String(number).padStart(4, "0")}`

export const processPlugins: readonly unknown[] = [
  "metrics",
  "access-log",
  "edge",
  { maintenance: { on: false } },
  "body-size",
  "auth",
  { "rate-limit": { common: { requests: 1_000_000, window: "60s" } } },
  "model",
  { pricing: { reservations: { requests: 1_000_000, window: "60s" } } },
]

const tokens = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }

export const model = (vendor: string, price: object = tokens): Tree => ({
  type: "llm",
  family: vendor,
  targets: [{ vendor, model: `${vendor}-model` }],
  max_output: 4096,
  price,
})

/** 1,000 micros for a token of input, 2,000 for one of output. */
export const processCatalog: Tree = {
  models: { gpt: model("openai"), claude: model("anthropic"), gemini: model("google") },
}

/** Simulators in place of the vendors, limits out of the way, Alice with a million credits. */
export const processGateway = (change: Tree = {}): Tree => ({
  listen: { host: "127.0.0.1", port: 0 },
  ops: { host: "127.0.0.1", port: 0 },
  store: { kind: "sqlite", path: "./tollgate.db", durability: "process" },
  sandbox: true,
  shutdown: "10s",
  catalog: "./catalog.yaml",
  vendors: vendorsAt("https://sandbox.invalid"),
  plugins: processPlugins,
  endpoints: "all",
  bootstrap: organisation({ alice: { credits: 1_000_000, keys: [memberKey(1)] } }),
  ...change,
})

export const vendorsAt = (origin: string): Tree =>
  Object.fromEntries(["openai", "anthropic", "google"].map(name => [name, { adapter: name, origin, secrets: [] }]))

export const organisation = (members: Tree): Tree => ({
  organisations: { acme: { gateway: true, models: "all", members } },
})

export const makeSite = (gateway: Tree = processGateway(), catalog: Tree = processCatalog): Site => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-process-"))
  const file = join(folder, "gateway.yaml")
  const write: Site["write"] = change => {
    if (change.gateway !== undefined) writeFileSync(file, JSON.stringify(change.gateway, null, 2))
    if (change.catalog !== undefined) writeFileSync(join(folder, "catalog.yaml"), JSON.stringify(change.catalog))
  }
  write({ gateway, catalog })
  return { folder, file, write, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

const cli = join(root, "core", "cli.ts")

export interface StartOptions {
  /** Words before the program, such as a shell that sets limits. */
  readonly through?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const linesKept = 1_000
/** The runner of the tests puts hooks into every Node below it (for signals, too): not into the product. */
const alone = ["-u", "NODE_OPTIONS"]

/** @throws Error with what it said when it ended before it served */
export const startGatewayProcess = async (file: string, options: StartOptions = {}): Promise<GatewayProcess> => {
  const words = [...(options.through ?? []), process.execPath, cli, "serve", "--config", file, "--json"]
  const child = spawn("env", [...alone, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, ...options.env },
  })
  // A run that is cut off by its time limit runs no teardown.
  const atExit = (): void => void child.kill("SIGKILL")
  process.once("exit", atExit)
  let errors = ""
  child.stderr?.on("data", chunk => {
    errors += chunk
  })
  const ended = once(child, "close").then(([code]) => {
    process.off("exit", atExit)
    return code as number | null
  })
  const lines: string[] = []
  const complaints: string[] = []
  const reader = createInterface({ input: child.stdout! })
  const ready = new Promise<Record<string, string>>((resolve, reject) => {
    reader.on("line", line => {
      if (!line.endsWith('"msg":"call"}') && lines.push(line) > linesKept) lines.shift()
      if (line.startsWith('{"level":"error"')) complaints.push(line)
      if (line.startsWith('{"url":')) resolve(JSON.parse(line) as Record<string, string>)
    })
    ended.then(code => reject(new Error(`the gateway ended with ${code}: ${errors}`)))
  })
  const { url = "", ops = "" } = await ready
  return {
    child,
    url,
    ops,
    pid: child.pid!,
    lines,
    complaints,
    errors: () => errors,
    ended,
    signal: name => void child.kill(name),
    async kill() {
      child.kill("SIGKILL")
      await ended
    },
  }
}

/** Runs a command of the CLI to its end. */
export const tollgate = (
  file: string,
  words: readonly string[],
  env: StartOptions["env"] = {},
): Promise<{ readonly code: number; readonly text: string }> =>
  new Promise(resolve => {
    const all = [...alone, process.execPath, cli, ...words, "--config", file, "--json"]
    execFile("env", all, { env: { PATH: process.env.PATH, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), text: stdout + stderr })
    })
  })
