/** The writer below the log, against a file and against a pipe without a reader. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import t, { type Test } from "tap"
import { createLineWriter } from "../../core/observe/lines.ts"

const hour = 3_600_000

const open = (t: Test, change: { readonly together?: number; readonly most?: number } = {}) => {
  const path = join(t.testdir({ log: "" }), "log")
  const fd = openSync(path, "a")
  t.teardown(() => closeSync(fd))
  const writer = createLineWriter(fd, { together: 64, most: 1_000, everyMs: hour, ...change })
  return { writer, written: () => readFileSync(path, "utf8") }
}

/** The file's content once it has this many characters. */
const after = async (written: () => string, characters: number): Promise<string> => {
  while (written().length < characters) await new Promise(resolve => setImmediate(resolve))
  return written()
}

t.test("a few lines wait, enough of them are written together and in their order", async t => {
  const { writer, written } = open(t)
  writer.write("one\n")
  t.equal(written(), "")
  const more = Array.from({ length: 20 }, (_, at) => `line ${at}\n`)
  for (const line of more) writer.write(line)
  const first = await after(written, 64)
  t.ok(`one\n${more.join("")}`.startsWith(first))
  writer.flush()
  t.equal(written(), `one\n${more.join("")}`)
})

t.test("lines beyond the bound are dropped whole, and later ones are written again", async t => {
  const { writer, written } = open(t, { together: 1_000, most: 20 })
  for (const line of ["0123456789\n", "0123456789\n", "short\n"]) writer.write(line)
  writer.flush()
  writer.write("later\n")
  writer.flush()
  t.equal(written(), "0123456789\nshort\nlater\n")
})

t.test("a file that cannot be written takes nothing and breaks nothing", async t => {
  const fd = openSync(join(t.testdir({ log: "" }), "log"), "r")
  t.teardown(() => closeSync(fd))
  const writer = createLineWriter(fd, { together: 64, most: 1_000, everyMs: hour })
  writer.write("one\n")
  writer.flush()
  writer.write("two\n")
  t.doesNotThrow(() => writer.flush())
})

t.test("what waits when a process ends is dropped when nobody reads its pipe", async t => {
  const log = fileURLToPath(new URL("../../core/observe/log.ts", import.meta.url))
  const script = `
    const { createLog } = await import(${JSON.stringify(log)})
    process.stdin.once("data", () => {
      createLog({ level: "info" }).info({}, "last words")
      process.exit(3)
    })`
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "ignore"] })
  t.teardown(() => child.kill("SIGKILL"))
  child.stdout.destroy()
  await once(child.stdout, "close")
  child.stdin.write("go")
  const [code] = await once(child, "exit")
  t.equal(code, 3)
})
