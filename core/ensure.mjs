/**
 * Makes a clone ready: installs what the lockfile says, builds the test runner once. Runs before `npm start`, `npm test`
 * and their like, so it is plain JavaScript for any Node from 18 on, and does nothing at all when nothing is missing.
 */
import { spawnSync } from "node:child_process"
import { existsSync, lstatSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const inRoot = path => join(root, path)
const modules = inRoot("node_modules")
const neededMajor = 24

const changedAt = path => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

const majorOf = version => Number.parseInt(version.replace(/^v/, ""), 10)

/** npm writes this file as its last act, so its time is the time of the last whole install. */
const isInstalled = () => changedAt(join(modules, ".package-lock.json")) >= changedAt(inRoot("package-lock.json"))

const stop = message => {
  console.error(`tollgate: ${message}`)
  process.exit(1)
}

const run = (command, args, what) => {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] })
  if (status !== 0)
    stop(`${what} failed (${error?.message ?? signal ?? `exit code ${status}`}); its own words are above`)
}

const install = () => {
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink()) {
    stop("node_modules is a link to another folder, and npm ci would empty that one; remove the link and try again")
  }
  console.error("tollgate: installing what package-lock.json names (npm ci, once)")
  const npm = process.env.npm_execpath // set by npm for its scripts: the same npm that was asked
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  if (npm?.endsWith(".js")) run(process.execPath, [npm, ...args], "npm ci")
  else run("npm", args, "npm ci")
}

/** Scripts run with `node_modules/.bin` first on the path: the Node from npm there counts before the one running this. */
const nodeOfScripts = () => {
  const own = join(modules, ".bin", "node")
  if (!existsSync(own)) return process.versions.node
  const { status, stdout } = spawnSync(own, ["--version"], { encoding: "utf8" })
  return status === 0 ? stdout.trim() : process.versions.node
}

const requireNode = () => {
  if (majorOf(process.versions.node) >= neededMajor || majorOf(nodeOfScripts()) >= neededMajor) return
  stop(
    `Node.js ${neededMajor} or later is needed; this is ${process.versions.node} and npm has no package of it ` +
      `that runs on ${process.platform}-${process.arch}. Install Node.js ${neededMajor} and try again.`,
  )
}

/** Without this, tap would still load its TypeScript plugin, which `.taprc` takes out: Node strips the types itself. */
const buildTestRunner = () => {
  const stamp = join(modules, ".tap-built")
  const settings = readFileSync(inRoot(".taprc"), "utf8")
  if (!existsSync(join(modules, "tap")) || (existsSync(stamp) && readFileSync(stamp, "utf8") === settings)) return
  console.error("tollgate: building the test runner (tap build, once)")
  const node = existsSync(join(modules, ".bin", "node")) ? join(modules, ".bin", "node") : process.execPath
  run(node, [join(modules, "tap", "dist", "esm", "run.mjs"), "build"], "tap build")
  writeFileSync(stamp, settings)
}

if (!isInstalled()) {
  install()
  requireNode()
}
if (majorOf(process.versions.node) < neededMajor && !existsSync(join(modules, ".bin", "node"))) requireNode()
buildTestRunner()
