/** Runs the gateway until it is told to stop. */
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import type { Config } from "../catalog/load.ts"
import { type Gateway, startFromFile } from "../gateway.ts"
import { type Answer, CliError, type Command, type Input } from "./command.ts"
import { facts } from "./text.ts"

export const serveCommands: readonly Command[] = [
  {
    name: "serve",
    options: [
      ["--port <number>", "port of the public listener, instead of PORT and the file's"],
      ["--ops-port <number>", "port of /metrics, /healthz and /readyz"],
    ],
    what: "run the gateway; SIGHUP reloads its configuration, SIGTERM drains and ends it",
    run: serve,
  },
]

async function serve(input: Input): Promise<Answer> {
  const gateway = await startFromFile(input.file, { env: input.terminal.env, overrides: overridesOf(input) })
  const ended = untilEnd(gateway)
  const ready = { url: gateway.url, ops: gateway.opsUrl, key: await demoKey(gateway.config), pid: process.pid }
  input.terminal.print(input.json ? JSON.stringify(ready) : welcome(ready, gateway.config))
  const code = await ended
  return { data: { stopped: true, code }, text: "tollgate: stopped", code }
}

const overridesOf = ({ options }: Input): { readonly port?: number; readonly opsPort?: number } => ({
  ...(options.port === undefined ? {} : { port: portOf(options.port) }),
  ...(options.opsPort === undefined ? {} : { opsPort: portOf(options.opsPort) }),
})

const portOf = (text: string): number => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new CliError(`${text} is no port: 0 to 65535 is expected`, 2)
}

/**
 * Resolves to the exit code when the gateway has drained. A second signal does not wait. After an error that nobody
 * caught, nothing about the process is certain: it drains what it can and ends with 1.
 */
const untilEnd = (gateway: Gateway): Promise<number> =>
  new Promise(resolve => {
    let stopping = false
    const stop = (code: number): void => {
      if (stopping) process.exit(130)
      stopping = true
      gateway.stop().then(
        () => resolve(code),
        error => {
          gateway.log.error({ err: error }, "stopped with an error")
          resolve(1)
        },
      )
    }
    const crash = (error: unknown): void => {
      gateway.log.error({ err: error }, "unexpected error: draining, then ending")
      if (!stopping) stop(1)
    }
    process.on("SIGTERM", () => stop(0))
    process.on("SIGINT", () => stop(0))
    process.on("SIGHUP", () => void gateway.reload()) // says in the log what became of it
    process.on("uncaughtException", crash)
    process.on("unhandledRejection", crash)
  })

/**
 * A sandbox writes its keys in plain text, and the configuration keeps only their digests: the demo key is the word of
 * the file whose digest is known.
 */
const demoKey = async (config: Config): Promise<string | undefined> => {
  if (!config.sandbox) return undefined
  const digests = new Set(config.bootstrap.flatMap(one => one.members.flatMap(member => member.keys)))
  const words = (await readFile(config.file, "utf8")).match(/tg_[\w-]+/g) ?? []
  return words.find(word => digests.has(createHash("sha256").update(word).digest("hex")))
}

interface Ready {
  readonly url: string
  readonly ops: string
  readonly key: string | undefined
  readonly pid: number
}

const welcome = (ready: Ready, config: Config): string => {
  const address = facts([
    ["base URL", ready.url],
    ["metrics", `${ready.ops}/metrics`],
    ...(ready.key === undefined ? [] : [["demo key", ready.key] as const]),
  ])
  const model = [...config.catalog.models.values()].find(one => one.type === "llm" && one.offered)
  return ready.key === undefined || model === undefined
    ? address
    : `${address}\n\nTry it:\n\n${demoCall(ready.url, ready.key, model.name)}\n`
}

const demoCall = (url: string, key: string, model: string): string =>
  [
    `curl -N ${url}/chat/completions \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    "  -H 'content-type: application/json' \\",
    `  -d '${JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello!" }] })}'`,
  ].join("\n")
