import { createHash } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import fc from "fast-check"
import t, { type Test } from "tap"
import { ConfigError, type LoadOptions, loadConfig, needsRestart } from "../../core/catalog/load.ts"
import { newName } from "../../core/cli/store.ts"
import { folderWith, loadFrom, smallCatalog, smallEnvironment, smallGateway } from "../fixtures/catalog.ts"

/** The problems of a gateway.yaml, without the folder. */
const problemsOf = async (
  t: Test,
  files: Record<string, string>,
  options?: LoadOptions,
): Promise<readonly string[]> => {
  const folder = await folderWith(t, files)
  try {
    await loadConfig(join(folder, "gateway.yaml"), options ?? { env: smallEnvironment })
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(problem => problem.replaceAll(`${folder}/`, ""))
    throw error
  }
  return []
}

t.test("what the configuration calls organisations and members, the command line could create", async t => {
  const long = "n".repeat(128)
  for (const name of ["a", "team:one", "a.b_c-d", "7", long]) {
    const bootstrap = `bootstrap: { organisations: { "${name}": { members: { "${name}": { credits: 1 } } } } }`
    const config = await loadFrom(t, { "gateway.yaml": `${smallGateway}\n${bootstrap}\n` })
    t.match(config.bootstrap, [{ name, members: [{ name }] }])
    t.equal(newName(name), name)
  }
  for (const name of ["", "a b", "a/b", ":a", "-a", "é", `${long}n`]) {
    const bootstrap = `bootstrap: { organisations: { "${name}": { members: { "${name}": { credits: 1 } } } } }`
    const problems = await problemsOf(t, { "gateway.yaml": `${smallGateway}\n${bootstrap}\n` })
    t.equal(problems.filter(problem => problem.includes("expected a name")).length, 2, name)
    t.throws(() => newName(name), { name: "CliError" })
  }
})

t.test("a file that says only what it must gets the written defaults", async t => {
  const config = await loadFrom(t)
  t.match(config, {
    listen: { host: "127.0.0.1", port: 8787 },
    ops: { host: "127.0.0.1", port: 8788 },
    basePath: "/v1/gateway",
    timezone: "Asia/Seoul",
    store: { kind: "sqlite", durability: "power" },
    limits: { bodiesInMemoryBytes: 256 * 1024 * 1024, connections: 10_000, stepMs: 10_000 },
    upstream: { connections: 4096, drain: { count: 256, timeMs: 10_000, bytes: 8 * 1024 * 1024 } },
    shutdownMs: 30_000,
    watch: false,
    sandbox: false,
    plugins: [],
    endpoints: "all",
    mounts: { "vendor-a": ["vendor-a"], "vendor-b": ["vendor-b"], "vendor-c": ["vendor-c"] },
    bootstrap: [],
  })
  t.match(config.vendors.get("one"), {
    adapter: "one",
    timeouts: { connectMs: 5000, firstByteMs: 120_000, idleMs: 120_000, totalMs: 600_000, totalStreamMs: 3_600_000 },
    onClientAbort: "drain",
    sharedIds: false,
    options: {},
  })
  t.match(config.catalog.find("some-model"), { family: "one", created: 0, messages: false, offered: true, aliases: [] })
})

t.test("every key is read, and paths are relative to the file", async t => {
  const config = await loadFrom(t, {
    "gateway.yaml": `
listen: { host: 0.0.0.0, port: 0 }
ops: { host: 0.0.0.0, port: 1, token: { env: ONE_KEY, name: ops } }
base_path: /ai
timezone: Europe/Berlin
store: { kind: redis, url: { env: REDIS_URL }, cluster: true, prefix: mine, deadline: 250ms }
limits: { bodies_in_memory: 1GB, connections: 7, step: 1m }
upstream: { connections: 3, drain: { count: 0, time: 1s, bytes: 64KB } }
shutdown: 1h
watch: true
catalog: ./catalog.yaml
vendors:
  one:
    adapter: openai
    origin: https://api.example.com/prefix/
    secrets: [{ env: ONE_KEY }, { file: ./two.key, name: second }]
    timeouts: { connect: 1s, total_stream: 2h }
    on_client_abort: cancel
    shared_ids: true
    options: { api_path: "" }
plugins: [metrics, ./mine.ts: { deep: [1, { a: true }] }]
endpoints: [chat]
mounts: { vendor-a: [a] }
`,
    "two.key": "key-two\n",
  })
  const folder = config.file.slice(0, -"gateway.yaml".length)
  t.match(config, {
    listen: { host: "0.0.0.0", port: 0 },
    basePath: "/ai",
    timezone: "Europe/Berlin",
    store: { kind: "redis", cluster: true, prefix: "mine", deadlineMs: 250 },
    limits: { bodiesInMemoryBytes: 1024 ** 3, connections: 7, stepMs: 60_000 },
    upstream: { connections: 3, drain: { count: 0, timeMs: 1000, bytes: 65_536 } },
    shutdownMs: 3_600_000,
    watch: true,
    mounts: { "vendor-a": ["a"] },
  })
  t.same(config.files, [config.file, `${folder}catalog.yaml`, `${folder}two.key`])
  t.same(
    config.plugins.map(({ name, options }) => ({ name, options })),
    [
      { name: "metrics", options: undefined },
      { name: "./mine.ts", options: { deep: [1, { a: true }] } },
    ],
  )
  const vendor = config.vendors.get("one")
  t.match(vendor, {
    adapter: "openai",
    origin: "https://api.example.com/prefix",
    onClientAbort: "cancel",
    sharedIds: true,
  })
  t.same(
    vendor?.secrets.map(secret => [secret.name, secret.reveal()]),
    [
      ["ONE_KEY", "key-of-one"],
      ["second", "key-two"],
    ],
  )
})

t.test("the command line is stronger than PORT, and PORT is stronger than the file", async t => {
  const env = { ...smallEnvironment, PORT: "4000" }
  t.equal((await loadFrom(t, {}, { env })).listen.port, 4000)
  const over = await loadFrom(t, {}, { env, overrides: { port: 5000, opsPort: 0 } })
  t.match(over, { listen: { port: 5000 }, ops: { port: 0 } })
  t.match(await problemsOf(t, {}, { env: { ...smallEnvironment, PORT: "80a" } }), [/PORT, found "80a"/])
})

t.test("a problem names file, line, column, path and what was expected", async t => {
  const cases: readonly (readonly [yaml: string, problem: string | RegExp])[] = [
    ["listen: { port: high }", 'gateway.yaml:4:17 listen.port: expected a whole number from 0 to 65535, found "high"'],
    ["listen: { port: 70000 }", /^gateway.yaml:4:17 listen.port: .*found 70000$/],
    ["listens: {}", /^gateway.yaml:4:10 listens: unknown key, expected one of: listen, ops/],
    ["watch: yes", 'gateway.yaml:4:8 watch: expected true or false, found "yes"'],
    ["shutdown: 30", /^gateway.yaml:4:11 shutdown: expected a duration such as 400ms, 5s, 10m or 1h, found 30$/],
    ["shutdown: 60d", /shutdown: expected a duration above 0 and below 25d, found "60d"$/],
    ["shutdown: 0s", /shutdown: expected a duration above 0 and below 25d, found "0s"$/],
    ["limits: { bodies_in_memory: 0MB }", /limits.bodies_in_memory: expected a size of one byte or more, found "0MB"$/],
    ["limits: { bodies_in_memory: 256 MB }", /limits.bodies_in_memory: expected a size such as/],
    ["base_path: /v1/", /base_path: expected a path/],
    ["timezone: Mars/Base", /timezone: expected an IANA time zone/],
    ["store: { kind: files }", /^gateway.yaml:4:16 store.kind: expected sqlite or redis, found "files"$/],
    ["store: { kind: sqlite, url: x }", /^gateway.yaml:4:29 store.url: unknown key/],
    ["store: { kind: redis }", "gateway.yaml:4:8 store: url is missing"],
    ["ops: { host: 0.0.0.0 }", /^gateway.yaml:4:6 ops: token is missing/],
    ["endpoints: some", /^gateway.yaml:4:12 endpoints: expected a list, found "some"$/],
    ["plugins: [{ a: 1, b: 2 }]", /^gateway.yaml:4:11 plugins.0: expected one plugin/],
    ["mounts: { x: [a/b] }", /mounts.x.0: expected one path segment/],
    ["mounts: { x: [a], y: [a] }", /^gateway.yaml:4:23 mounts.y.0: expected a prefix that no other family has$/],
    [
      "bootstrap: { organisations: { demo: { members: { a: { credits: -1 } } } } }",
      /members.a.credits: expected a number/,
    ],
    ["bootstrap: { organisations: { demo: { members: { a: {} } } } }", /members.a: credits is missing/],
    ["bootstrap: { organisations: { demo: { members: { a: { credits: 0.0000001 } } } } }", /at most six decimals/],
    [
      "bootstrap: { organisations: { demo: { members: { a: { credits: 1, keys: [tg_plain] } } } } }",
      /keys.0: expected "sha256:/,
    ],
    [
      "bootstrap: { organisations: { a/b: { members: {} } } }",
      "gateway.yaml:4:36 bootstrap.organisations.a/b: expected a name of at most 128 letters, digits, dots, colons, dashes and underscores",
    ],
    ["bootstrap: { organisations: { demo: { members: { -a: { credits: 1 } } } } }", /members.-a: expected a name/],
    ["catalog: ./nowhere.yaml", /^gateway.yaml:4:10 catalog: expected a file that can be read at nowhere.yaml$/],
    ["listen:", /listen: expected an object, found null$/],
  ]
  for (const [yaml, problem] of cases) {
    t.match(await problemsOf(t, { "gateway.yaml": `${smallGateway}\n${yaml}\n` }), [problem], yaml)
  }
})

t.test("vendors are checked: origin, secrets, timeouts", async t => {
  const cases: readonly (readonly [vendor: string, problem: RegExp])[] = [
    ["{ secrets: [] }", /vendors.one: origin is missing/],
    ["{ origin: api.example.com }", /origin: expected an http or https address/],
    ["{ origin: 'https://me:pass@api.example.com' }", /origin: expected an http or https address without user/],
    ["{ origin: 'https://api.example.com?key=1' }", /origin: expected an http or https address/],
    ["{ origin: file:///etc }", /origin: expected an http or https address/],
    [
      "{ origin: https://a.example, secrets: [sk-literal] }",
      /secrets.0: expected \{ env: NAME \} or \{ file: path \}; a secret is never/,
    ],
    [
      "{ origin: https://a.example, secrets: [{ env: NOT_SET }] }",
      /secrets.0.env: expected a secret, and environment variable NOT_SET is missing or empty/,
    ],
    [
      "{ origin: https://a.example, secrets: [{ file: none.key }] }",
      /secrets.0.file: .*file none.key is missing or empty/,
    ],
    ["{ origin: https://a.example, secrets: [{ env: toString }] }", /toString is missing/],
    ["{ origin: https://a.example, secrets: [{ env: A, file: b }] }", /expected either env or file/],
    ["{ origin: https://a.example, secrets: [{ env: TWO_LINES }] }", /expected one line of plain text/],
    ["{ origin: https://a.example, secrets: [{ env: ONE_KEY }, { env: ONE_KEY }] }", /secrets with different names/],
    ["{ origin: https://a.example, timeouts: { connect: soon } }", /timeouts.connect: expected a duration/],
    ["{ origin: https://a.example, on_client_abort: wait }", /expected drain or cancel/],
  ]
  const env = { ...smallEnvironment, TWO_LINES: "a\nb" }
  for (const [vendor, problem] of cases) {
    t.match(await problemsOf(t, { "gateway.yaml": `vendors:\n  one: ${vendor}\n` }, { env }), [problem], vendor)
  }
})

t.test("a mistake is told once: what follows from it is no news", async t => {
  const broken = { "gateway.yaml": "vendors:\n  one: { origin: api.example.com }\n" }
  t.match(await problemsOf(t, broken), { length: 1, 0: /vendors.one.origin: expected an http or https address/ })
  t.same(await problemsOf(t, { "gateway.yaml": "watch: true\n" }), ["gateway.yaml:1:1 (top): vendors is missing"])
  const catalog = { "catalog.yaml": "models: { m: { type: llm, targets: { vendor: one, model: x } } }" }
  t.same(await problemsOf(t, catalog), ["catalog.yaml:1:36 models.m.targets: expected a list, found a map"])
})

t.test(
  "bootstrap names models as the catalog does: aliases by their current names, unknown ones are mistakes",
  async t => {
    const gateway = `vendors:
  one: { origin: https://a.example, secrets: [{ env: ONE_KEY }] }
  two: { origin: https://b.example, secrets: [{ env: TWO_KEY }], optional: true }
bootstrap: { organisations: { demo: { models: [old, left, older] } } }
`
    const catalog = `${smallCatalog}  left: { type: llm, targets: [{ vendor: two, model: x }] }
aliases: { old: some-model, older: left }
`
    const files = { "gateway.yaml": gateway, "catalog.yaml": catalog }
    t.match((await loadFrom(t, files)).bootstrap, [{ models: ["some-model", "left"] }])
    t.same(await problemsOf(t, { ...files, "gateway.yaml": gateway.replace("old,", "odl,") }), [
      "gateway.yaml:4:48 bootstrap.organisations.demo.models.0: there is no model odl",
    ])
  },
)

t.test("all problems of both files are told at once, and none of them holds a secret", async t => {
  const problems = await problemsOf(t, {
    "gateway.yaml": `${smallGateway}  two: { origin: https://b.example, secrets: [sk-very-secret] }\nwatch: 1\nnonsense: 2\n`,
    "catalog.yaml": smallCatalog.replace("type: llm", "type: lllm"),
  })
  t.equal(problems.length, 4)
  t.match(problems.join("\n"), /catalog.yaml:3:11 models.some-model.type: expected llm or audio/)
  t.notMatch(problems.join("\n"), /sk-very-secret/)
})

t.test("YAML that could surprise is refused with its place", async t => {
  const bomb = `a: &a [x, x, x, x, x, x, x, x, x, x]\n${"bcdefgh"
    .split("")
    .map((name, index) => `${name}: &${name} [${`*${"abcdefgh"[index]},`.repeat(10)}]`)
    .join("\n")}`
  const cases: readonly (readonly [yaml: string, problem: RegExp])[] = [
    ["watch: true\nwatch: false", /^gateway.yaml:5:1 .*unique/i],
    ["mounts: { 5: [a], '5': [b] }", /mounts.5: the key is repeated/],
    ["watch: !!js/function x", /^gateway.yaml:4:\d+ .*tag/i],
    ["watch: !mine x", /^gateway.yaml:4:\d+ .*tag/i],
    ["watch: !!binary aGk=", /tag/i],
    ["watch: *nothing", /^gateway.yaml:4:8 /],
    ["watch: &self [*self]", /^gateway.yaml:4:\d+ /],
    [bomb, /values, aliases followed|Excessive alias/],
    ["[a: b", /^gateway.yaml:\d+:\d+ /],
    ["? [a, b]\n: c", /expected a plain key/],
    ["---\nwatch: true", /^gateway.yaml:4:1 .*multiple documents$/],
    [`deep: ${"[".repeat(100)}${"]".repeat(100)}`, /expected at most 64 levels/],
    [`deep: ${"[".repeat(50_000)}`, /^gateway.yaml:\d+:\d+ /],
    [`# ${"x".repeat(5_000_000)}`, /expected at most \d+ bytes/],
  ]
  for (const [yaml, problem] of cases) {
    t.match(await problemsOf(t, { "gateway.yaml": `${smallGateway}\n${yaml}\n` }), [problem], yaml.slice(0, 60))
  }
  for (const [text, found] of [
    ["", "null"],
    ["just words", '"just words"'],
    ["- a list", "a list"],
  ] as const) {
    const files = { "gateway.yaml": text, "catalog.yaml": "models: 5" }
    t.same(await problemsOf(t, files), [`gateway.yaml:1:1 (top): expected an object, found ${found}`])
  }
  t.match(await problemsOf(t, { "gateway.yaml": "- a" }), [/expected an object, found a list/])
})

t.test("a key named __proto__ is an unknown key and nothing else", async t => {
  const problems = await problemsOf(t, { "gateway.yaml": `${smallGateway}\n__proto__: { watch: true }\n` })
  t.match(problems, [/__proto__: unknown key/])
})

t.test("whatever the text is, the answer is a configuration or a ConfigError", async t => {
  const folder = await folderWith(t, {})
  const file = join(folder, "gateway.yaml")
  const words = [
    "vendors",
    "one",
    ":",
    " ",
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    "&a",
    "*a",
    "!!str",
    "- ",
    "'",
    '"',
    "|",
    "#",
    "1",
    "5s",
    "? ",
    "store",
    "%",
    "\t",
    "<<",
    "---",
    "null",
  ]
  const mixed = fc.array(fc.constantFrom(...words), { maxLength: 40 }).map(parts => parts.join(""))
  const cut = fc
    .tuple(fc.nat(smallCatalog.length), fc.string())
    .map(([at, text]) => smallCatalog.slice(0, at) + text + smallCatalog.slice(at + 1))
  await fc.assert(
    fc.asyncProperty(fc.oneof(mixed, fc.string(), cut), fc.boolean(), async (text, broken) => {
      await writeFile(file, broken ? text : smallGateway)
      await writeFile(join(folder, "catalog.yaml"), broken ? smallCatalog : text)
      await loadConfig(file, { env: smallEnvironment }).catch(error => {
        if (!(error instanceof ConfigError)) throw error
      })
    }),
    { numRuns: 300 },
  )
})

t.test("a file that is not there is a ConfigError that names it", async t => {
  await t.rejects(loadConfig(join(await folderWith(t, {}), "none.yaml"), { env: {} }), {
    name: "ConfigError",
    message: /none.yaml:1:1 \(top\): expected a file that can be read/,
  })
})

t.test("an optional vendor without its secret takes the models away that only it serves", async t => {
  const gateway = `vendors:
  one: { origin: https://a.example, secrets: [{ env: ONE_KEY }] }
  two: { origin: https://b.example, secrets: [{ env: TWO_KEY }], optional: true }
`
  const catalog = `models:
  both: { type: llm, targets: [{ vendor: two, model: b }, { vendor: one, model: b }] }
  second: { type: llm, targets: [{ vendor: two, model: s }] }
aliases: { old-second: second }
overlays: { cheap: { second: { price: { input: 1 per 1M tokens } } } }
`
  const files = { "gateway.yaml": gateway, "catalog.yaml": catalog }
  const without = await loadFrom(t, files)
  t.same([...without.catalog.models.keys()], ["both"])
  t.same(without.catalog.find("both")?.targets, [{ vendor: "one", model: "b" }])
  t.equal(without.catalog.find("old-second"), undefined)
  const withIt = await loadFrom(t, files, { env: { ...smallEnvironment, TWO_KEY: "k" } })
  t.same([...withIt.catalog.models.keys()], ["both", "second"])
  t.match(
    await problemsOf(t, { "gateway.yaml": gateway.replace("ONE_KEY }]", "ONE_KEY }], optional: true") }, { env: {} }),
    [/vendors: expected the secret of at least one vendor: set one of ONE_KEY, TWO_KEY$/],
  )
})

t.test("the sandbox takes absent secrets and plain keys, of which only the digest stays", async t => {
  const config = await loadFrom(
    t,
    {
      "gateway.yaml": `${smallGateway}
sandbox: true
ops: { host: 0.0.0.0, token: literal }
bootstrap: { organisations: { demo: { gateway: false, models: [some-model], members: { a: { credits: 0.5, keys: [tg_plain] } } } } }
`,
    },
    { env: {} },
  )
  t.equal(config.vendors.get("one")?.secrets[0]?.reveal(), "sandbox-takes-any-key")
  t.equal(config.ops.token?.reveal(), "literal")
  const digest = createHash("sha256").update("tg_plain").digest("hex")
  t.same(config.bootstrap, [
    { name: "demo", gateway: false, models: ["some-model"], members: [{ name: "a", micros: 500_000, keys: [digest] }] },
  ])
})

t.test("a plugin's option that is wrong is told with its own place, or the nearest above it", async t => {
  const config = await loadFrom(t, {
    "gateway.yaml": `${smallGateway}plugins:\n  - first\n  - second: { max: 1, list: [a, { b: 2 }] }\n`,
  })
  const [first, second] = config.plugins
  const told = (text: string | undefined): string | undefined => text?.slice(text.indexOf("gateway.yaml"))
  t.equal(told(second?.problem(["max"], "too small")), "gateway.yaml:5:20 plugins.1.second.max: too small")
  t.equal(told(second?.problem(["list", 1, "b"], "no")), "gateway.yaml:5:38 plugins.1.second.list.1.b: no")
  t.equal(told(second?.problem(["absent"], "missing")), "gateway.yaml:5:13 plugins.1.second.absent: missing")
  t.equal(told(first?.problem(["max"], "missing")), "gateway.yaml:4:5 plugins.0.max: missing")
  t.match(second?.at, { line: 5, column: 13 })
})

t.test("an address of the store that is none is told at its line, and what stands in it is not", async t => {
  const yaml = `${smallGateway}store: { kind: redis, url: { env: REDIS_URL } }`
  const bad = [
    "redis//user:PASSWORD@cache:6379",
    "//user:PASSWORD@cache:6379",
    "cache:6379",
    "http://user:PASSWORD@cache",
    "redis://",
    "redis://user:PASSWORD%zz@cache",
    "redis://user:PASSWORD@cache:port",
  ]
  for (const REDIS_URL of bad) {
    const problems = await problemsOf(t, { "gateway.yaml": yaml }, { env: { ...smallEnvironment, REDIS_URL } })
    t.match(problems, [/^gateway\.yaml:3:28 store\.url: expected the address of a Redis, such as redis:/], REDIS_URL)
    t.notMatch(problems.join(), /PASSWORD|cache/)
  }
  for (const REDIS_URL of ["rediss://user:p%40ss@cache:6380/1", "redis://127.0.0.1"])
    t.same(await problemsOf(t, { "gateway.yaml": yaml }, { env: { ...smallEnvironment, REDIS_URL } }), [])
})

t.test("a store that says only its path is the embedded one", async t => {
  const { store } = await loadFrom(t, { "gateway.yaml": `${smallGateway}store: { path: ./x.db }` })
  t.match(store, { kind: "sqlite", path: /\/x\.db$/, durability: "power" })
})

t.test("what a running process cannot change is named, and nothing else", async t => {
  const before = await loadFrom(t, { "gateway.yaml": `${smallGateway}store: { kind: sqlite, path: ":memory:" }` })
  t.same(needsRestart(before, before), [])
  const same = await loadFrom(t, {
    "gateway.yaml": `${smallGateway}store: { kind: sqlite, path: ":memory:" }\nwatch: true\nshutdown: 5s`,
  })
  t.same(needsRestart(before, same), [])
  const other = await loadFrom(t, {
    "gateway.yaml": `${smallGateway}listen: { port: 1 }\nops: { token: { env: ONE_KEY } }\nbase_path: /x\nstore: { kind: redis, url: { env: REDIS_URL } }\n`,
  })
  t.same(needsRestart(before, other), ["listen", "ops", "base_path", "store"])
  const turned = {
    ...other,
    store: { ...other.store, url: { name: "REDIS_URL", reveal: () => "another" } },
  } as typeof other
  t.same(needsRestart(other, turned), ["store"])
})

t.test("a file that is not there is told with the way to get one", async t => {
  const folder = await folderWith(t, {})
  await t.rejects(loadConfig(join(folder, "none.yaml")), {
    message: /expected a file that can be read at .*none\.yaml; `cp -r node_modules\/tollgate\/config \.` brings one/,
  })
})

t.test("a refusal names the files that were read, and those that were wanted and are not there", async t => {
  const gateway = `${smallGateway}  two: { origin: https://two.example.com, secrets: [{ file: ./two.key }] }\n`
  const refusedFor = async (files: Record<string, string>): Promise<readonly string[]> => {
    const folder = await folderWith(t, files)
    const error = await loadConfig(join(folder, "gateway.yaml"), { env: smallEnvironment }).catch(one => one)
    return (error as ConfigError).files.map(file => file.slice(folder.length + 1))
  }
  t.same(await refusedFor({ "gateway.yaml": gateway }), ["gateway.yaml", "catalog.yaml", "two.key"])
  t.same(await refusedFor({ "gateway.yaml": gateway, "catalog.yaml": "models: {" }), ["gateway.yaml", "catalog.yaml"])
  t.same(await refusedFor({ "gateway.yaml": `${gateway}catalog: ./none.yaml` }), ["gateway.yaml", "none.yaml"])
})
