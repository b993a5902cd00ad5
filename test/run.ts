/**
 * What `npm test` runs: tap, with folders among the arguments read as "all tests below it". (tap would look there only
 * for endings that its TypeScript plugin adds, and that plugin is off: Node strips the types itself.)
 */
import { spawn } from "node:child_process"
import { statSync } from "node:fs"
import { fileURLToPath } from "node:url"

const tap = fileURLToPath(new URL("../node_modules/tap/dist/esm/run.mjs", import.meta.url))

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const testsOf = (argument: string): string =>
  isFolder(argument) ? `${argument.replace(/\/+$/, "")}/**/*.test.ts` : argument

const child = spawn(process.execPath, [tap, ...process.argv.slice(2).map(testsOf)], { stdio: "inherit" })
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal))
child.on("exit", code => process.exit(code ?? 1))
