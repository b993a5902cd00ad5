/**
 * Compares the installed package with the tree, starts it in a folder that has nothing but a plugin package, streams one
 * call through both, reads its metrics and lets it drain. Continuous integration runs it; the argument is the folder.
 */
import { strict as assert } from "node:assert"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"

interface Ready {
  readonly url: string
  readonly ops: string
  readonly key: string
  readonly model: string
}

const deadlineMs = 60_000
const folder = process.argv[2] ?? "."

/** The first line with an address; lines of the log come on the same stream. */
const ready = async (child: ChildProcess): Promise<Ready> => {
  assert.ok(child.stdout)
  for await (const line of createInterface({ input: child.stdout })) {
    const value = line.startsWith("{") ? JSON.parse(line) : {}
    if (typeof value.url === "string" && typeof value.key === "string") return value
  }
  throw new Error("the gateway ended before it was ready")
}

const streamOneCall = async ({ url, key, model }: Ready, signal: AbortSignal): Promise<void> => {
  const answer = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "user-agent": "smoke" },
    body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello" }] }),
    signal,
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  assert.match(answer.headers.get("content-type") ?? "", /text\/event-stream/)
  assert.match(text, /data: \[DONE\]\s*$/)
  assert.equal(answer.headers.get("x-guest"), "here", "the plugin package took part")
}

const metricsTell = async ({ ops }: Ready, signal: AbortSignal): Promise<void> => {
  const text = await (await fetch(`${ops}/metrics`, { signal })).text()
  assert.match(text, /tollgate_http_requests_total\{[^}]*status="200"/)
}

/** Nothing came into the package that is not compiled from a file of this tree, or a page of it. */
const contentsMatch = (): void => {
  const installed = join(folder, "node_modules", "tollgate")
  const files = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(installed.length + 1))
  const sourceOf = (path: string): string => path.replace(/^dist\//, "").replace(/(\.d\.ts|\.js)$/, ".ts")
  assert.deepEqual(
    files.filter(path => !existsSync(join(import.meta.dirname, "..", sourceOf(path)))),
    [],
  )
  assert.ok(files.includes("dist/core/cli.js") && files.includes("config/sandbox.yaml"))
}

/** A plugin that came as a package: nothing of ours knows it but a line of YAML. */
const addGuest = (): void => {
  const guest = join(folder, "node_modules", "tollgate-guest")
  mkdirSync(guest, { recursive: true })
  writeFileSync(
    join(guest, "package.json"),
    JSON.stringify({ name: "tollgate-guest", type: "module", main: "index.js" }),
  )
  writeFileSync(
    join(guest, "index.js"),
    `const run = (call, next) => (call.header("x-guest", "here"), next())
    export default { name: "guest", api: 1, setup: host => host.use({ run }) }`,
  )
  cpSync(join(folder, "node_modules", "tollgate", "config"), join(folder, "config"), { recursive: true })
  const sandbox = join(folder, "config", "sandbox.yaml")
  writeFileSync(sandbox, readFileSync(sandbox, "utf8").replace(/^plugins:$/m, "plugins:\n  - tollgate-guest"))
}

contentsMatch()
addGuest()
const words = ["serve", "--config", "config/sandbox.yaml", "--port", "0", "--ops-port", "0", "--json"]
const child = spawn(join(folder, "node_modules", ".bin", "tollgate"), words, {
  cwd: folder,
  stdio: ["ignore", "pipe", "inherit"],
})
const ended = once(child, "exit")
const signal = AbortSignal.timeout(deadlineMs)
signal.addEventListener("abort", () => child.kill("SIGKILL"))
try {
  const gateway = await ready(child)
  child.stdout?.resume()
  await streamOneCall(gateway, signal)
  await metricsTell(gateway, signal)
  child.kill("SIGTERM")
  const [code] = await ended
  assert.equal(code, 0, "the gateway drains and exits 0")
  console.log(`streamed one call through ${gateway.url}`)
} finally {
  if (child.exitCode === null) child.kill("SIGKILL")
}
