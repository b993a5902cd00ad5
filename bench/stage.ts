/** Everything that a bench needs running: each program is started when a row first asks for it, and ended at the end. */

import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { answers, freePort, type Program, run, until } from "./process.ts"
import { catalogYaml, gatewayYaml, nginxConf } from "./settings.ts"

/** A program that takes requests. */
export interface Side {
  readonly name: string
  readonly port: number
  readonly pid: number
  /** Where the Messages wire is, and where the chat endpoint. */
  readonly path: string
  readonly chatPath: string
  /** Whether it looks at keys. */
  readonly guarded: boolean
  /** More header fields that it wants, each with its line end. */
  readonly fields?: string
}

export interface Gateway extends Side {
  /** From the start of the process to its first good answer of /readyz. */
  readonly readyMs: number
  stop(): Promise<void>
}

export type StoreKind = "sqlite" | "redis"

export interface Stage {
  /** Without anything between. */
  direct(): Promise<Side>
  bare(): Promise<Side>
  gateway(kind: StoreKind): Promise<Gateway>
  /** A new process, on a store that is filled; end it with `stop`. */
  freshGateway(): Promise<Gateway>
  /** `undefined` when it is not installed. */
  nginx(): Promise<Side | undefined>
  portkey(): Promise<Side | undefined>
  close(): Promise<void>
}

const here = import.meta.dirname
const script = (name: string): string => join(here, `${name}.ts`)
const plainPath = "/v1/messages"

export const openStage = (): Stage => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"))
  const programs: Program[] = []
  const keep = (program: Program): Program => {
    programs.push(program)
    return program
  }
  const upstream = once(() => startUpstream(keep))
  const stores = {
    sqlite: once(() => fillSqlite(folder)),
    redis: once(() => startRedis(folder, keep)),
  }
  const gateway = async (kind: StoreKind): Promise<Gateway> =>
    startGateway(folder, (await upstream()).port, await stores[kind](), keep)
  const gateways = { sqlite: once(() => gateway("sqlite")), redis: once(() => gateway("redis")) }
  const fresh = once(() => fillSqlite(mkdtempSync(join(folder, "fresh-"))))
  return {
    direct: upstream,
    bare: once(async () => startBare((await upstream()).port, keep)),
    gateway: kind => gateways[kind](),
    freshGateway: async () => startGateway(folder, (await upstream()).port, await fresh(), keep),
    nginx: once(async () => startNginx(folder, (await upstream()).port, keep)),
    portkey: once(async () => startPortkey((await upstream()).port, keep)),
    async close() {
      await Promise.all(programs.map(program => program.stop()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Keep = (program: Program) => Program

const once = <T>(start: () => Promise<T>): (() => Promise<T>) => {
  let started: Promise<T> | undefined
  return () => {
    started ??= start()
    return started
  }
}

const side = (name: string, port: number, { pid }: Program): Side => ({
  name,
  port,
  pid,
  path: plainPath,
  chatPath: plainPath,
  guarded: false,
})

const startUpstream = async (keep: Keep): Promise<Side> => {
  const port = await freePort()
  const program = keep(run(process.execPath, [script("upstream"), String(port)]))
  await until("the upstream", () => accepts(port))
  return side("direct", port, program)
}

const startBare = async (upstreamPort: number, keep: Keep): Promise<Side> => {
  const port = await freePort()
  const program = keep(run(process.execPath, [script("bare"), String(port), `http://127.0.0.1:${upstreamPort}`]))
  await until("the bare relay", () => accepts(port))
  return side("bare undici relay", port, program)
}

/** A filled store: its value in gateway.yaml, and the environment that this names. */
interface Filled {
  readonly yaml: string
  readonly env: Readonly<Record<string, string>>
}

const fillSqlite = async (folder: string): Promise<Filled> => {
  const path = join(folder, "bench.db")
  await finished(process.execPath, [script("seed"), "sqlite", path])
  return { yaml: `{ kind: sqlite, path: ${JSON.stringify(path)}, durability: process }`, env: {} }
}

const startRedis = async (folder: string, keep: Keep): Promise<Filled> => {
  const port = await freePort()
  const data = join(folder, "redis")
  mkdirSync(data)
  const durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
  keep(run("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--dir", data, ...durable]))
  await until("redis", () => accepts(port))
  const url = `redis://127.0.0.1:${port}`
  await finished(process.execPath, [script("seed"), "redis", url])
  return { yaml: "{ kind: redis, url: { env: BENCH_REDIS_URL } }", env: { BENCH_REDIS_URL: url } }
}

/** As a user starts it; its log goes to a file. `BENCH_NODE_OPTIONS` may name options of Node, such as --cpu-prof. */
const startGateway = async (folder: string, upstreamPort: number, store: Filled, keep: Keep): Promise<Gateway> => {
  const [port, opsPort] = [await freePort(), await freePort()]
  const home = mkdtempSync(join(folder, "gateway-"))
  const config = join(home, "gateway.yaml")
  writeFileSync(config, gatewayYaml({ upstreamPort, port, opsPort, store: store.yaml }))
  writeFileSync(join(home, "catalog.yaml"), catalogYaml)
  const options = (process.env.BENCH_NODE_OPTIONS ?? "").split(" ").filter(word => word !== "")
  const words = [...options, join(here, "..", "core", "run.mjs"), "serve", "--config", config]
  const startedAt = performance.now()
  const program = keep(
    run(process.execPath, words, {
      env: { BENCH_VENDOR_KEY: "bench", ...store.env },
      output: openSync(join(home, "log"), "w"),
    }),
  )
  await until("the gateway", () => answers(`http://127.0.0.1:${opsPort}/readyz`))
  return {
    ...side("gateway", port, program),
    path: "/v1/gateway/anthropic/v1/messages",
    chatPath: "/v1/gateway/chat/completions",
    guarded: true,
    readyMs: performance.now() - startedAt,
    stop: () => program.stop(),
  }
}

const startNginx = async (folder: string, upstreamPort: number, keep: Keep): Promise<Side | undefined> => {
  if (!(await works("nginx", ["-v"]))) return undefined
  const port = await freePort()
  const prefix = mkdtempSync(join(folder, "nginx-"))
  writeFileSync(join(prefix, "nginx.conf"), nginxConf(port, upstreamPort))
  const program = keep(run("nginx", ["-p", prefix, "-c", join(prefix, "nginx.conf")]))
  await until("nginx", () => accepts(port))
  return side("nginx", port, program)
}

const portkeyScript = join(here, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js")

/** Installed by `npm install` in bench/, or not at all. It is told its upstream by header fields. */
const startPortkey = async (upstreamPort: number, keep: Keep): Promise<Side | undefined> => {
  if (!(await works(process.execPath, ["--check", portkeyScript]))) return undefined
  const port = await freePort()
  const program = keep(run(process.execPath, [portkeyScript, `--port=${port}`, "--headless"]))
  await until("the peer gateway", () => accepts(port))
  const fields = `x-portkey-provider: anthropic\r\nx-portkey-custom-host: http://127.0.0.1:${upstreamPort}/v1\r\n`
  return { ...side("portkey gateway", port, program), fields }
}

const works = async (command: string, words: readonly string[]): Promise<boolean> => {
  try {
    await finished(command, words)
    return true
  } catch {
    return false
  }
}

const finished = async (command: string, words: readonly string[]): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  spawn(command, words, { stdio: ["ignore", "ignore", "ignore"] })
    .once("error", reject)
    .once("exit", code => (code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}`))))
  return promise
}

const accepts = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })
