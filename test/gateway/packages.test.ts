/** Installed packages are found beside the configuration, whichever module format and `exports` they have. */

import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import t, { type Test } from "tap"
import { startGateway } from "../../core/gateway.ts"
import { packageFile } from "../../core/packages.ts"

/** Each package by its package.json; every file that one could name is there. */
const installed = (t: Test, packages: Readonly<Record<string, object>>): string => {
  const folder = t.testdir({ "gateway.yaml": "" })
  for (const [name, manifest] of Object.entries(packages)) {
    const own = join(folder, "node_modules", name)
    mkdirSync(own, { recursive: true })
    for (const file of ["index.js", "import.js", "require.cjs", "sub.js"]) writeFileSync(join(own, file), "")
    writeFileSync(join(own, "package.json"), JSON.stringify({ name, ...manifest }))
  }
  return join(folder, "gateway.yaml")
}

const found = (name: string, from: string): string | undefined => packageFile(name, from)?.split("node_modules/")[1]

t.test("a package gives the file that an import would take", async t => {
  const from = installed(t, {
    plain: {},
    main: { main: "./require.cjs" },
    text: { exports: "./import.js" },
    modern: { type: "module", exports: { ".": { types: "./index.d.ts", import: "./import.js" } } },
    "@scope/modern": { exports: { ".": { import: "./import.js" }, "./sub": { node: { import: "./sub.js" } } } },
    both: { main: "./require.cjs", exports: { require: "./require.cjs", import: "./import.js" } },
    last: { exports: { browser: "./sub.js", default: "./index.js" } },
    closed: { exports: { ".": null, "./sub": { browser: "./sub.js" } } },
  })
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["plain", "plain/index.js"],
    ["plain/sub.js", "plain/sub.js"],
    ["main", "main/require.cjs"],
    ["text", "text/import.js"],
    ["text/sub", undefined],
    ["modern", "modern/import.js"],
    ["modern/sub", undefined],
    ["@scope/modern", "@scope/modern/import.js"],
    ["@scope/modern/sub", "@scope/modern/sub.js"],
    ["both", "both/import.js"],
    ["last", "last/index.js"],
    ["closed", undefined],
    ["closed/sub", undefined],
    ["nowhere", undefined],
    ["fs", undefined],
    ["node:fs", undefined],
    ["../gateway.yaml/..", undefined],
    ["", undefined],
    ["a%2fb", undefined],
  ]
  for (const [name, file] of cases) t.equal(found(name, from), file, name)
})

t.test("a package whose manifest is no JSON is none, told at the line that names it", async t => {
  const from = installed(t, { broken: {} })
  writeFileSync(join(from, "..", "node_modules", "broken", "package.json"), "{")
  writeFileSync(from, "sandbox: true\nvendors: {}\nplugins:\n  - broken\n")
  writeFileSync(join(from, "..", "catalog.yaml"), "models: {}\n")
  await t.rejects(startGateway({ file: from }), {
    message: /gateway\.yaml:4:5 plugins\.0: plugin broken is neither built in nor an installed package/,
  })
})

t.test("a plugin of a package that only imports can reach serves", async t => {
  const from = installed(t, { "tollgate-guest": { type: "module", exports: { import: "./import.js" } } })
  writeFileSync(
    join(from, "..", "node_modules", "tollgate-guest", "import.js"),
    `export default { name: "guest", api: 1, setup: host => void host.route({
      method: "GET", path: "/guest/", access: "none", model: "none", charge: "none", dialect: "plain",
      handle: call => call.reply(200, "from a package") }) }`,
  )
  writeFileSync(
    from,
    `
listen: { host: 127.0.0.1, port: 0 }
ops: { port: 0 }
sandbox: true
store: { kind: sqlite, path: ./tollgate.db, durability: process }
vendors: {}
plugins: [metrics, access-log, edge, tollgate-guest]
endpoints: []
`,
  )
  writeFileSync(join(from, "..", "catalog.yaml"), "models: {}\n")
  const gateway = await startGateway({ file: from })
  t.teardown(() => gateway.stop())
  const answer = await fetch(`${gateway.url}/v1/gateway/guest/`, { headers: { "user-agent": "test" } })
  t.equal(await answer.text(), "from a package")
})
