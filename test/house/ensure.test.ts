/** `core/ensure.mjs` against a clone whose npm is a script of the test: nothing is downloaded. */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import t, { type Test } from "tap"
import { root } from "../fixtures/sources.ts"

/** Writes down how it was called, then does what `npm ci` does last; or fails. */
const fakeNpm = `
  const { appendFileSync, mkdirSync, writeFileSync } = require("node:fs")
  appendFileSync("npm-calls", process.argv.slice(2).join(" ") + "\\n")
  if (process.env.NPM_FAILS) process.exit(7)
  mkdirSync("node_modules", { recursive: true })
  writeFileSync("node_modules/.package-lock.json", "{}")
`

const clone = (t: Test) => {
  const folder = t.testdir({
    ".taprc": "plugin: []\n",
    "package-lock.json": "{}",
    npm: { "package.json": "{}", "npm.js": fakeNpm },
  })
  mkdirSync(join(folder, "core"))
  copyFileSync(join(root, "core", "ensure.mjs"), join(folder, "core", "ensure.mjs"))
  const run = (env: Record<string, string> = {}) =>
    spawnSync(process.execPath, ["core/ensure.mjs"], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, npm_execpath: join(folder, "npm", "npm.js"), ...env },
    })
  const calls = (): readonly string[] =>
    existsSync(join(folder, "npm-calls")) ? readFileSync(join(folder, "npm-calls"), "utf8").trim().split("\n") : []
  return { folder, run, calls }
}

t.test("a fresh clone is installed without running anybody's scripts", async t => {
  const { run, calls } = clone(t)
  const { status, stderr } = run()
  t.equal(status, 0, stderr)
  t.match(calls(), [/^ci .*--ignore-scripts/])
  t.equal(stderr.trim().split("\n").length, 1, "it says so in one line")
})

t.test("an installed clone is left alone, in silence", async t => {
  const { run, calls } = clone(t)
  run()
  const { status, stdout, stderr } = run()
  t.equal(status, 0)
  t.equal(calls().length, 1)
  t.equal(stdout + stderr, "")
})

t.test("a newer lockfile is installed", async t => {
  const { folder, run, calls } = clone(t)
  run()
  const later = new Date(Date.now() + 10_000)
  utimesSync(join(folder, "package-lock.json"), later, later)
  run()
  t.equal(calls().length, 2)
})

t.test("a linked node_modules belongs to another clone, and is never emptied", async t => {
  const { folder, run, calls } = clone(t)
  const shared = join(folder, "shared")
  mkdirSync(shared)
  writeFileSync(join(shared, "package.txt"), "kept")
  symlinkSync(shared, join(folder, "node_modules"))
  const { status, stderr } = run()
  t.equal(status, 1)
  t.match(stderr, /is a link to another folder/)
  t.same(calls(), [])
  t.equal(readFileSync(join(shared, "package.txt"), "utf8"), "kept")
})

t.test("a failing npm stops everything and says what failed", async t => {
  const { run } = clone(t)
  const { status, stderr } = run({ NPM_FAILS: "1" })
  t.equal(status, 1)
  t.match(stderr, /npm ci failed \(exit code 7\)/)
})

t.test("the test runner is built again when its settings change", async t => {
  const { folder, run } = clone(t)
  run()
  const runner = join(folder, "node_modules", "tap", "dist", "esm")
  mkdirSync(runner, { recursive: true })
  writeFileSync(
    join(runner, "run.mjs"),
    `import { appendFileSync } from "node:fs"; appendFileSync("built", process.argv[2] + "\\n")`,
  )
  run()
  run()
  t.equal(readFileSync(join(folder, "built"), "utf8"), "build\n")
  writeFileSync(join(folder, ".taprc"), "plugin: [other]\n")
  run()
  t.equal(readFileSync(join(folder, "built"), "utf8"), "build\nbuild\n")
})
