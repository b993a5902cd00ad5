#!/usr/bin/env node
/** The command line. Nothing is imported before the version is checked: an older Node would fail with an obscure error. */
const needed = 24
if (Number.parseInt(process.versions.node, 10) < needed) {
  console.error(`tollgate: Node.js ${needed} or later is needed; this is ${process.versions.node}`)
  process.exit(1)
}
// Compiled once, read back at the next start: the time until the first call falls from 1.5 s to 0.6.
const { enableCompileCache } = await import("node:module")
enableCompileCache()
// A reader that left (`| head`) is not a failure: the command goes on, silently.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
// While the rest is read, nobody can reload yet, and the signal that asks for it must not end the process.
if (process.argv[2] === "serve") process.on("SIGHUP", () => {})
const { runCli } = await import("./cli/program.ts")
process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  print: text => process.stdout.write(`${text}\n`),
  complain: text => process.stderr.write(`${text}\n`),
})
// A timer or socket that a plugin left open must not keep a finished command alive.
setTimeout(() => process.exit(), 1_000).unref()
