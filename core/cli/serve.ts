/** Runs the gateway until it is told to stop. */
import { readFile } from "node:fs/promises"
import { flushCompileCache } from "node:module"
import type { Config } from "../catalog/load.ts"
import { type Gateway, startGateway } from "../gateway.ts"
import { keyDigest } from "../kit/credentials.ts"
import type { Clock } from "../plugin.ts"
import { type Answer, CliError, type Command, type Input } from "./command.ts"
import { giveBackMemory, keepCompiledCode } from "./engine.ts"
import { giveBackWhenQuiet } from "./quiet.ts"
import { facts } from "./text.ts"

/** By then nothing refers to what only the start needed. */
const settledMs = 300

/** Writes the compile cache for the next start now and not at the end, because a process may be killed. */
const settle = (clock: Clock): void => {
  giveBackMemory()
  flushCompileCache() // before the engine's settings change: V8 takes no code that was cached with other ones
  keepCompiledCode()
  giveBackWhenQuiet(clock)
}

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
  const starting = startGateway({ file: input.file, env: input.terminal.env, overrides: overridesOf(input) })
  const ended = untilEnd(starting)
  const gateway = await starting
  setTimeout(settle, settledMs, gateway.parts.clock).unref()
  const ready: Ready = {
    url: gateway.url + gateway.config.basePath,
    ops: gateway.opsUrl,
    pid: process.pid,
    key: await demoKey(gateway.config),
    model: chatModel(gateway.config),
  }
  input.terminal.print(input.json ? JSON.stringify(ready) : welcome(ready))
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
  throw new CliError(`${text} is not a port: expected 0 to 65535`, 2)
}

/** Ctrl-C below npm arrives twice: from the terminal and from npm. */
const echoMs = 1_000

/**
 * Resolves to the exit code when the gateway has drained; signals that come while it starts are obeyed when it has. A
 * second one does not wait. After an error that nobody caught, nothing about the process is certain: it drains what it
 * can and ends with 1.
 */
const untilEnd = (starting: Promise<Gateway>): Promise<number> =>
  new Promise(resolve => {
    let stoppingSince: number | undefined
    let running: Gateway | undefined
    const stop = (code: number): void => {
      if (stoppingSince !== undefined) {
        if (performance.now() - stoppingSince <= echoMs) return
        running?.tell() // what the store has not taken yet would be lost without a word
        process.exit(130)
      }
      stoppingSince = performance.now()
      started(gateway =>
        gateway.stop().then(
          () => resolve(code),
          error => {
            gateway.parts.log.error({ err: error }, "stopped with an error")
            resolve(1)
          },
        ),
      )
    }
    const started = (act: (gateway: Gateway) => unknown): void => void starting.then(act, () => {}) // told by `serve`
    process.on("SIGTERM", () => stop(0))
    process.on("SIGINT", () => stop(0))
    process.on("SIGHUP", () => started(gateway => gateway.reload())) // says in the log what became of it
    started(gateway => {
      running = gateway
      const { parts } = gateway
      const crash = (error: unknown): void => {
        parts.log.error({ err: error }, "unexpected error: draining, then ending")
        if (stoppingSince === undefined) stop(1)
      }
      process.on("uncaughtException", crash)
      process.on("unhandledRejection", crash)
    })
  })

/**
 * A sandbox writes its keys in plain text, and the configuration keeps only their digests: the demo key is the word of
 * the file whose digest is known.
 */
const demoKey = async (config: Config): Promise<string | undefined> => {
  if (!config.sandbox) return undefined
  const digests = new Set(config.bootstrap.flatMap(one => one.members.flatMap(member => member.keys)))
  const words = (await readFile(config.file, "utf8")).match(/tg_[\w-]+/g) ?? []
  return words.find(word => digests.has(keyDigest(word)))
}

/** What is told when calls are served; with `--json` on one line. */
interface Ready {
  readonly url: string
  readonly ops: string
  readonly pid: number
  /** In a sandbox, a key that works. */
  readonly key: string | undefined
  /** A model to try it with. */
  readonly model: string | undefined
}

const chatModel = (config: Config): string | undefined =>
  [...config.catalog.models.values()].find(
    ({ type, offered, rules }) => type === "llm" && offered && rules.responses_only !== true,
  )?.name

const welcome = ({ url, ops, key, model }: Ready): string => {
  const address = facts([
    ["base URL", url],
    ["metrics", `${ops}/metrics`],
    ...(key === undefined ? [] : [["demo key", key] as const]),
  ])
  return key === undefined || model === undefined ? address : `${address}\n\n${trial(url, key, model)}\n`
}

/** A stream's head is sent before its price is known: only a whole answer shows it at once. */
const trial = (url: string, key: string, model: string): string => {
  const messages = [{ role: "user", content: "Hello!" }]
  const authorised = `-H 'authorization: Bearer ${key}'`
  const chat = (options: string, body: object): string =>
    [
      `curl ${options} ${url}/chat/completions/ \\`,
      `  ${authorised} \\`,
      "  -H 'content-type: application/json' \\",
      `  -d '${JSON.stringify(body)}'`,
    ].join("\n")
  return [
    "Try it. The answer's head says what it cost, in x-credits-charged:",
    chat("-i", { model, messages }),
    "The same as a stream, and the credits that are left after it:",
    `${chat("-N", { model, stream: true, messages })}\ncurl ${url}/credits/ ${authorised}`,
  ].join("\n\n")
}
