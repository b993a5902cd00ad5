/**
 * Compiles the package, for Node strips no types below `node_modules`: `core/` and `plugins/` to `dist/`, beside them the
 * files that the code reads at run time. `config/` and the pages are packed as they are.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const dist = join(root, "dist")
const rooms = ["core", "plugins"]

/** Source files come out of the compiler, pages stay here; what is left (scripts of the store, data) is read at run time. */
const isReadAtRunTime = path => !/\.(ts|mjs|md)$/.test(path)

rmSync(dist, { recursive: true, force: true })
const compiler = join(root, "node_modules", "typescript", "bin", "tsc")
const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" })
if (status !== 0) process.exit(status ?? 1)

for (const room of rooms) cpSync(join(root, room), join(dist, room), { recursive: true, filter: isReadAtRunTime })
chmodSync(join(dist, "core", "cli.js"), 0o755)
