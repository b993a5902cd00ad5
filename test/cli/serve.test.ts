/** The command that stays: a process of its own, told by signals what to do. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { createInterface, type Interface } from "node:readline"
import t, { type Test } from "tap"
import { root } from "../fixtures/sources.ts"

const key = "tg_serve_test_key_0000000000000000000000000000"

const yaml = (port: number, plugin = "") => `
sandbox: true
listen: { port: ${port} }
ops: { port: 0 }
store: { kind: sqlite, path: ./tollgate.db, durability: process }
shutdown: 2s
vendors: { acme: { adapter: openai, origin: "https://api.acme.example" } }
plugins: [metrics, access-log, edge, { maintenance: { on: false } }, body-size, auth, rate-limit, model, pricing${plugin}]
bootstrap: { organisations: { north: { models: all, members: { alice: { credits: 5, keys: [${key}] } } } } }
`

const catalog =
  "models: { large: { type: llm, family: acme, targets: [{ vendor: acme, model: l }], price: { input: 1 per 1K tokens } } }\n"

interface Served {
  readonly child: ChildProcess
  readonly file: string
  readonly lines: AsyncIterator<string>
  readonly errors: () => string
  readonly ended: Promise<number | null>
}

const serve = (
  t: Test,
  words: readonly string[] = [],
  { port = 0, plugin }: { port?: number; plugin?: string } = {},
) => {
  const folder = t.testdir({
    "gateway.yaml": yaml(port, plugin === undefined ? "" : ", ./own.mjs"),
    "catalog.yaml": catalog,
    "own.mjs": plugin ?? "",
  })
  const file = join(folder, "gateway.yaml")
  const child = spawn(process.execPath, [join(root, "core", "cli.ts"), "serve", "--config", file, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH },
  })
  let errors = ""
  child.stderr?.on("data", chunk => {
    errors += chunk
  })
  const ended = once(child, "close").then(([code]) => code as number | null)
  t.teardown(async () => {
    child.kill("SIGKILL")
    await ended
  })
  const reader: Interface = createInterface({ input: child.stdout! })
  return { child, file, lines: reader[Symbol.asyncIterator](), errors: () => errors, ended } satisfies Served
}

/** The first line that is JSON and has what is asked for. */
const lineWith = async ({ lines }: Served, name: string): Promise<Record<string, string>> => {
  for (let next = await lines.next(); next.done !== true; next = await lines.next()) {
    const value = next.value.startsWith("{") ? JSON.parse(next.value) : {}
    if (name in value) return value
  }
  throw new Error(`no line with ${name}`)
}

t.test("it says where it listens, serves its demo key, and drains on SIGTERM", async t => {
  const served = serve(t, ["--json"])
  const ready = await lineWith(served, "url")
  t.match(ready, { url: /^http:\/\/127\.0\.0\.1:\d+\/v1\/gateway$/, key, model: "large" })
  const answer = await fetch(`${ready.url}/models/`, { headers: { authorization: `Bearer ${ready.key}` } })
  t.equal(answer.status, 200)
  await answer.body?.cancel()
  served.child.kill("SIGTERM")
  t.equal(await served.ended, 0)
})

t.test("when the readers of its output are gone it serves on, and still drains on SIGTERM", async t => {
  const served = serve(t, ["--json"])
  const { url } = await lineWith(served, "url")
  served.child.stdout?.destroy()
  served.child.stderr?.destroy()
  const answer = await fetch(`${url}/models/`, { headers: { authorization: `Bearer ${key}` } })
  t.equal(answer.status, 200)
  await answer.body?.cancel()
  served.child.kill("SIGTERM")
  t.equal(await served.ended, 0)
})

t.test("people get calls to paste: a whole answer with its price in the head, a stream, and what is left", async t => {
  const served = serve(t)
  let text = ""
  while (!text.includes("/credits/")) {
    const { value, done } = await served.lines.next()
    if (done === true) throw new Error(`the gateway ended: ${served.errors()}`)
    text += `${value}\n`
  }
  const [whole, stream, credits] = text.split("curl ").slice(1)
  t.match(whole, /^-i \S+\/chat\/completions\/ /)
  t.notMatch(whole, '"stream"')
  t.match(stream, /^-N .*"stream":true/s)
  t.match(credits, /^\S+\/credits\/ -H 'authorization: Bearer tg_serve_test_key/)
  t.match(text, /base URL +http:\/\/127\.0\.0\.1:\d+\/v1\/gateway/)
  t.match(text, /metrics +http:\/\/127\.0\.0\.1:\d+\/metrics/)
  served.child.kill("SIGINT")
  t.equal(await served.ended, 0)
})

t.test("SIGHUP reads the file again, and a broken one changes nothing", async t => {
  const served = serve(t, ["--json"])
  const { url } = await lineWith(served, "url")
  writeFileSync(served.file, "listen: [")
  served.child.kill("SIGHUP")
  t.match(await lineWith(served, "reasons"), { reasons: [/gateway\.yaml:1/] })
  const answer = await fetch(`${url}/models/`, { headers: { authorization: `Bearer ${key}` } })
  t.equal(answer.status, 200)
  await answer.body?.cancel()
})

/** Its setup says that it began, and ends when it is told to by a signal of its own. */
const waiting = `export default {
  name: "waiting",
  api: 1,
  setup: () => new Promise(done => {
    process.once("SIGUSR2", () => done())
    process.stdout.write('{"setting":"up"}\\n')
  }),
}
`

t.test("a signal that comes while it starts is obeyed when it has: SIGHUP reloads, SIGTERM ends it with 0", async t => {
  const reloaded = serve(t, ["--json"], { plugin: waiting })
  await lineWith(reloaded, "setting")
  reloaded.child.kill("SIGHUP")
  reloaded.child.kill("SIGUSR2")
  await lineWith(reloaded, "url")
  await lineWith(reloaded, "setting")
  reloaded.child.kill("SIGTERM")
  t.equal(await reloaded.ended, 0, "though the setup of the reload has not ended")
  const stopped = serve(t, ["--json"], { plugin: waiting })
  await lineWith(stopped, "setting")
  stopped.child.kill("SIGTERM")
  stopped.child.kill("SIGUSR2")
  t.equal(await stopped.ended, 0)
})

t.test("a timer that a plugin left running does not keep it from ending", async t => {
  const plugin = "export default { name: 'left', api: 1, setup: () => void setInterval(() => {}, 1000) }"
  const served = serve(t, ["--json"], { plugin })
  await lineWith(served, "url")
  served.child.kill("SIGTERM")
  t.equal(await served.ended, 0)
})

t.test("a port that is taken is told in one line, with exit code 1", async t => {
  const other = createServer().listen(0, "127.0.0.1")
  await once(other, "listening")
  t.teardown(() => other.close())
  const { port } = other.address() as { port: number }
  const served = serve(t, ["--port", String(port)])
  t.equal(await served.ended, 1)
  t.match(served.errors(), /^tollgate: [^\n]*EADDRINUSE[^\n]*\n$/)
})

t.test("a second gateway on the same file is refused", async t => {
  const first = serve(t, ["--json"])
  await lineWith(first, "url")
  const child = spawn(process.execPath, [join(root, "core", "cli.ts"), "serve", "--config", first.file], {
    stdio: "ignore",
  })
  const [code] = await once(child, "exit")
  t.equal(code, 1)
})

t.test("`check` ends, and says why, when a plugin's setup does not", async t => {
  const folder = t.testdir({
    "gateway.yaml": `${yaml(0, ", ./own.mjs")}limits: { step: 50ms }\n`,
    "catalog.yaml": catalog,
    "own.mjs": "export default { name: 'stuck', api: 1, setup: () => new Promise(() => {}) }",
  })
  const words = ["check", "--config", join(folder, "gateway.yaml")]
  const child = spawn(process.execPath, [join(root, "core", "cli.ts"), ...words], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env.PATH },
  })
  let errors = ""
  child.stderr.on("data", chunk => {
    errors += chunk
  })
  const [code] = await once(child, "close")
  t.equal(code, 1)
  t.match(errors, /^tollgate: .*gateway\.yaml:\d+:\d+ plugins\.9: plugin stuck: setup did not end within 0\.05s\n$/)
})
