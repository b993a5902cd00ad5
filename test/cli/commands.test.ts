/** The commands against a store of their own, in this process: what they print, what they change, how they refuse. */
import { createHash } from "node:crypto"
import { existsSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import t, { type Test } from "tap"
import { runCli } from "../../core/cli/program.ts"
import { version } from "../../core/version.ts"

const gatewayYaml = `
sandbox: true
store: { kind: sqlite, path: ./tollgate.db, durability: process }
vendors:
  acme: { adapter: openai, origin: "https://api.acme.example", secrets: [{ env: ACME_KEY }] }
plugins: [metrics, access-log, edge, { maintenance: { on: false } }, body-size, auth, rate-limit, model, pricing]
`

const catalogYaml = `
models:
  large: { type: llm, family: acme, targets: [{ vendor: acme, model: l-1 }], price: { input: 3 per 1M tokens } }
  spread:
    type: llm
    family: acme
    messages: true
    targets: [{ vendor: acme, model: a, weight: 3 }, { vendor: acme, model: b, weight: 1 }, { vendor: acme, model: c }]
    price:
      input: 3 per 1M tokens
      when: [{ if: { service_tier: fast }, times: 2 }, { if: { prompt: "> 1000" }, input: 5 per 1M tokens }]
  codex: { type: llm, family: openai, targets: [{ vendor: acme, model: c-1 }], rules: { responses_only: true } }
  small: { type: llm, family: acme, targets: [{ vendor: acme, model: s-1 }], price: { input: 1 per 1M tokens } }
aliases: { tiny: small }
overlays: { partner: { large: { price: { input: 2 per 1M tokens } } } }
`

interface Said {
  readonly code: number
  readonly out: string
  readonly errors: string
}

const cli = (t: Test, gateway = gatewayYaml, env: Readonly<Record<string, string>> = {}) => {
  const folder = t.testdir({ "gateway.yaml": gateway, "catalog.yaml": catalogYaml })
  const file = join(folder, "gateway.yaml")
  const run = async (line: string, ...more: readonly string[]): Promise<Said> => {
    const said = { out: [] as string[], errors: [] as string[] }
    const terminal = {
      env,
      print: (text: string) => void said.out.push(text),
      complain: (text: string) => void said.errors.push(text),
    }
    const code = await runCli([...line.split(" "), ...more, "--config", file], terminal)
    return { code, out: said.out.join("\n"), errors: said.errors.join("\n") }
  }
  const json = async (line: string) => JSON.parse((await run(`${line} --json`)).out)
  return { run, json, file }
}

const withMember = async (t: Test) => {
  const made = cli(t)
  await made.run("org create north --name North")
  await made.run("member create north alice --credits 12.5")
  return made
}

t.test("a key is shown once, and never again", async t => {
  const { json, run } = await withMember(t)
  const { key, id } = await json("key create north alice --name laptop")
  t.match(key, /^tg_[A-Za-z0-9_-]{43}$/)
  const listed = await run("key list north")
  t.match(listed.out, id)
  t.match(listed.out, "laptop")
  const all = listed.out + (await run("key list north --json")).out
  t.notMatch(all, key)
  t.notMatch(all, createHash("sha256").update(key).digest("hex"))
})

t.test("controls in names and reasons break no table and colour no screen, and are exact in JSON", async t => {
  const { run, json } = await withMember(t)
  const nasty = "a\nb\u001b[31m\u009b\u202e"
  const shown = "a\\u000ab\\u001b[31m\\u009b\\u202e"
  await run("key create north alice --name", nasty)
  await run("credits grant north alice 1 --reason", nasty)
  await run("org create south --name", nasty)
  for (const line of ["key list north", "ledger show north alice", "org list"]) {
    const { out } = await run(line)
    t.match(out, shown, line)
    t.equal(out.split("\n").length, 1 + (await json(line)).length, line)
  }
  t.match(await json("key list north"), [{ name: nasty }])
  t.equal((await json("ledger show north alice"))[1].reason, nasty)
})

t.test("an error quotes what was typed on one line, without its controls", async t => {
  const { run, file } = await withMember(t)
  const nasty = "x\ny\u001b[31m"
  for (const line of ["org create", "member list", "key revoke", "explain GET", "org", "org list"]) {
    const { errors } = await run(line, nasty)
    t.match(errors, /^tollgate: .*x\\u000ay\\u001b\[31m/, line)
    t.notMatch(errors, /[\p{Cc}]/u, line)
  }
  t.equal(JSON.parse((await run("member list --json", nasty)).errors).error, `there is no organisation ${nasty}`)
  writeFileSync(file, gatewayYaml.replace("{ on: false }", '{ "\\e[31m": 1, two: 2 }'))
  const { errors } = await run("check")
  t.match(errors, /\\u001b\[31m.*\n.*two/)
  t.notMatch(errors, "\u001b")
})

t.test("a revoked key stays revoked", async t => {
  const { json, run } = await withMember(t)
  const { id } = await json("key create north alice")
  t.equal((await json(`key disable ${id}`)).state, "disabled")
  t.equal((await json(`key enable ${id}`)).state, "valid")
  t.equal((await json(`key revoke ${id}`)).state, "revoked")
  const again = await run(`key enable ${id}`)
  t.equal(again.code, 1)
  t.match(again.errors, /is revoked/)
})

t.test("credits are granted exactly and stand in the ledger", async t => {
  const { json, run } = await withMember(t)
  const balance = await json("credits grant north alice 0.000001 --reason test")
  t.match(balance, { granted: 12.500001, available: 12.500001, held: 0, spent: 0, unit: "credits" })
  t.match(await json("ledger show north alice"), [
    { kind: "grant", credits: 12.5 },
    { kind: "grant", credits: 0.000001, reason: "test" },
  ])
  t.match((await run("credits show north alice")).out, /available +12\.500001/)
  t.match(await run("ledger check"), { code: 0, out: "every balance is the sum of its rows (members: 1, rows: 2)" })
  t.match(await json("ledger check"), { right: true, members: 1, rows: 2, findings: [] })
})

t.test("an id of a grant gives once, and never passes for another amount", async t => {
  const { run, json } = await withMember(t)
  t.equal((await run("credits grant north alice 5 --id g1")).code, 0)
  t.match(await json("credits grant north alice 5 --id g1"), { granted: 17.5 }, "a repeat is the same grant")
  const other = await run("credits grant north alice 7 --id g1")
  t.match(other, { code: 1, errors: "id g1 stands for a grant of 5 already; nothing was granted now" })
  t.match(await run("credits grant north alice 7 --id="), { code: 2, errors: "--id is empty" })
  t.match(await json("credits show north alice"), { granted: 17.5 })
})

t.test("a store that is not there is told, not begun by whoever only looks", async t => {
  const { run, file } = cli(t)
  for (const line of ["ledger check", "org list", "credits grant north alice 5", "key list north"]) {
    t.match(await run(line), { code: 1, errors: /there is no store at .*tollgate\.db: `tollgate org create` or/ }, line)
  }
  t.notOk(existsSync(join(dirname(file), "tollgate.db")))
  t.equal((await run("org create north")).code, 0)
  t.equal((await run("ledger check")).code, 0)
})

t.test("a balance is told exactly, whatever its size", async t => {
  const { run } = cli(t)
  await run("org create north")
  await run("member create north alice --credits 0.000001")
  const granted = await run("credits grant north alice 9007199254 --json")
  t.match(granted.out, '"granted":9007199254.000001,"available":9007199254.000001,"held":0,"spent":0')
  t.match((await run("ledger show north alice --json")).out, '"credits":9007199254,"shortfall":0')
  t.match((await run("member list north --json")).out, '"granted":9007199254.000001')
})

t.test("an amount that is none changes nothing and is a wrong word", async t => {
  const { json, run } = await withMember(t)
  for (const amount of ["0", "abc", "1e9", "0.0000001"]) {
    t.equal((await run(`credits grant north alice ${amount}`)).code, 2, amount)
  }
  t.equal((await json("credits show north alice")).granted, 12.5)
})

t.test("an organisation's models are all but some, or a list", async t => {
  const { json } = await withMember(t)
  t.match(await json("org models north disable tiny"), { models: "all", disabled: ["small"] })
  t.match(await json("org models north enable small"), { models: "all", disabled: [] })
  t.match(await json("org models north only large"), { models: ["large"], disabled: [] })
  t.match(await json("org models north enable tiny"), { models: ["large", "small"] })
  t.match(await json("org models north disable large"), { models: ["small"] })
  t.match(await json("org models north all"), { models: "all", disabled: [] })
})

t.test("an overlay is given and taken away, and the gateway switched", async t => {
  const { json, run, file } = await withMember(t)
  t.equal((await json("org overlay north partner")).overlay, "partner")
  t.equal((await json("org list"))[0].overlay, "partner")
  const catalog = join(dirname(file), "catalog.yaml")
  writeFileSync(catalog, catalogYaml.replace(/^overlays.*$/m, ""))
  t.match((await run("org list")).out, "partner (not in the catalog: no prices)")
  writeFileSync(catalog, catalogYaml)
  await run("org overlay north none")
  t.equal((await json("org list"))[0].overlay, undefined)
  await run("org gateway north off")
  t.equal((await json("org list"))[0].gateway, false)
})

t.test("what does not exist is told in one line", async t => {
  const { run } = await withMember(t)
  const missing = [
    "member list south",
    "key create north bob",
    "credits grant north bob 5",
    "key revoke key_none",
    "org models north disable nothing",
    "member create north alice",
    "org create north",
  ]
  for (const line of missing) {
    const { code, out, errors } = await run(line)
    t.equal(code, 1, line)
    t.equal(out, "", line)
    t.match(errors, /^tollgate: [^\n]+$/, line)
  }
})

t.test("words that mean nothing are exit code 2", async t => {
  const { run } = await withMember(t)
  const wrong = [
    "org gateway north maybe",
    "org overlay north unknown",
    "org models north only",
    "org models north all large",
    "member create north bad/name",
    "key create north",
    "teleport",
    "serve --port 70000",
    "credits show north alice --colour",
  ]
  for (const line of wrong) t.equal((await run(line)).code, 2, line)
})

t.test("with --json a failure is JSON too", async t => {
  const { run } = await withMember(t)
  const { code, errors } = await run("member list south --json")
  t.equal(code, 1)
  t.same(JSON.parse(errors), { error: "there is no organisation south" })
})

t.test("with --json wrong words are JSON too, on one line and nothing beside it", async t => {
  const { run } = cli(t)
  const wrong = {
    "org create": "missing required argument 'organisation'",
    "org list --colour": "unknown option '--colour'",
    "org crate": "unknown command 'crate' (Did you mean create?)",
    "help nothing": "a command is missing",
  }
  for (const [line, error] of Object.entries(wrong)) {
    const { code, out, errors } = await run(`${line} --json`)
    t.equal(code, 2, line)
    t.equal(out, "", line)
    t.same(JSON.parse(errors), { error }, line)
  }
  t.equal((await run("org create")).errors, "tollgate: missing required argument 'organisation'")
})

t.test("check prints prices, and names file and line of what is wrong", async t => {
  const { run, json } = cli(t)
  const good = await run("check")
  t.equal(good.code, 0, good.errors)
  t.match(good.out, /large +llm +acme\/l-1 +input 3 credits per 1M tokens/)
  t.match(await json("check"), {
    models: [{ model: "large" }, { model: "spread" }, { model: "codex" }, { model: "small" }],
  })
  const terminal = { env: {}, print: () => {}, complain: (text: string) => t.match(text, "expected a file") }
  t.equal(await runCli(["check", "--config", "nowhere.yaml"], terminal), 1)
})

t.test("explain tells route, steps, vendors and price, and no secret", async t => {
  const { json, run } = cli(t)
  t.match(await json("explain POST /chat/completions --model tiny"), {
    route: "POST /v1/gateway/chat/completions/",
    charge: "usage",
    model: "small",
    targets: [{ vendor: "acme", model: "s-1", secrets: ["ACME_KEY"] }],
    price: [{ item: "input", basis: /1 credits? per 1M tokens/ }],
  })
  t.match((await run("explain get /v1/gateway/models/")).out, /steps +metrics > access-log > .*auth/)
})

t.test("explain tells the bounds of a call, shares of targets, dearer rows and who else takes the model", async t => {
  const { json, run } = cli(t)
  const told = await json("explain POST /vendor-a/v1/messages --model spread")
  t.match(told, {
    taken: true,
    takenBy: ["/chat/completions/", "/decisions/", "/vendor-a/v1/messages/", "/vendor-a/v1/messages/count_tokens/"].map(
      path => `POST /v1/gateway${path}`,
    ),
    bounds: [
      { plugin: "body-size", text: "bodies of at most 25MB" },
      { plugin: "rate-limit", text: "120 requests of a member in any 60s (bucket common)" },
      { plugin: "pricing", text: /^300 holds of a member in any 60s/ },
    ],
    targets: [{ weight: 3 }, { weight: 1 }, { model: "c" }],
  })
  t.same(told.price.slice(1), [
    { item: "all", basis: "times 2", when: "service tier fast" },
    { item: "input", basis: told.price[0].basis.replace("3", "5"), when: "prompt > 1000" },
  ])
  const { out } = await run("explain POST /vendor-a/v1/messages --model spread")
  t.match(out, /acme +c +fallback +ACME_KEY/)
  t.match(out, /all +times 2 +service tier fast/)
})

t.test("explain tells what is not served: on this route, or anywhere, or at any price", async t => {
  const { json, run } = cli(t)
  t.match(await json("explain POST /vendor-a/v1/messages --model large"), { taken: false })
  const codex = await json("explain POST /chat/completions --model codex")
  t.match(codex, { taken: false, takenBy: ["POST /v1/gateway/responses/"], price: [] })
  t.match((await run("explain POST /chat/completions --model codex")).out, /price +none: its calls are refused/)
})

t.test("explain takes a path with or without the base path and a query, and a whole URL", async t => {
  const { json, run } = cli(t)
  const host = "https://gateway.example:8443"
  for (const path of ["/usage/", "usage", "/v1/gateway/usage/", "v1/gateway/usage"]) {
    const url = `${host}/${path.replace(/^\//, "")}?next=https://a.example/b`
    for (const asked of [`${path}?by=day`, `${path}#top`, url]) {
      t.equal((await json(`explain GET ${asked}`)).route, "GET /v1/gateway/usage/", asked)
    }
  }
  t.equal((await run(`explain GET ${host}`)).errors, "tollgate: no route takes /v1/gateway/")
  t.match((await run("explain GET /v1/gatewayusage/")).errors, "no route takes /v1/gateway/v1/gatewayusage/")
})

t.test("explain refuses what the gateway would refuse", async t => {
  const { run } = cli(t)
  t.match((await run("explain POST /nowhere")).errors, /no route takes/)
  t.match((await run("explain DELETE /chat/completions")).errors, /takes POST, not DELETE/)
  t.match((await run("explain POST /chat/completions --model none")).errors, /no model none/)
})

t.test("check finds what only starting would find: a plugin's wrong option, with its line", async t => {
  const { run, file } = cli(t)
  writeFileSync(file, gatewayYaml.replace("{ on: false }", "{ onn: false }"))
  const { code, errors } = await run("check")
  t.equal(code, 1)
  t.match(errors, /gateway\.yaml:6:\d+ .*onn/)
})

t.test("a plugin in a folder that npm init made loads as .mjs or .mts, else the error says what to do", async t => {
  const { run, file } = cli(t)
  const write = (name: string, text: string) => writeFileSync(join(dirname(file), name), text)
  const checkWith = (name: string) => {
    write(name, 'export default { name: "own", api: 1, setup() {} }')
    write("gateway.yaml", gatewayYaml.replace("[metrics,", `[./${name}, metrics,`))
    return run("check")
  }
  write("package.json", '{ "type": "commonjs" }')
  for (const name of ["own.js", "own.ts"]) {
    const { code, errors } = await checkWith(name)
    t.equal(code, 1, name)
    t.match(errors, `plugin ./${name} cannot be loaded: Unexpected token 'export': a module is named .mjs or .mts, or`)
    t.match(errors, 'its package.json says "type": "module"')
  }
  for (const name of ["own.mjs", "own.mts"]) t.equal((await checkWith(name)).code, 0, name)
})

t.test("the version is that of the package", async t => {
  const { run } = cli(t)
  for (const flag of ["--version", "-V"]) t.same(await run(flag), { code: 0, out: version, errors: "" })
  t.match((await run("org create north --name -V --json")).out, '"title":"-V"')
})

t.test("a group without a command prints its help, as a failure", async t => {
  const { code, out, errors } = await cli(t).run("help nothing")
  t.equal(code, 2)
  t.equal(out, "")
  t.match(errors, /^Usage: tollgate.*\n.*help \[command\][^\n]*$/s)
})

t.test("help is no failure", async t => {
  const { run } = cli(t)
  const { code, out } = await run("org --help")
  t.equal(code, 0)
  t.match(out, /create.*\n.*list/)
})

const partly = `
store: { path: ":memory:" }
vendors:
  acme: { adapter: openai, origin: "https://api.acme.example", secrets: [{ env: ACME_KEY }], optional: true }
  tools: { adapter: http, origin: "https://tools.example", secrets: [{ env: TOOLS_KEY }] }
  maps: { adapter: http, origin: "https://maps.example", secrets: [{ env: A }, { env: B }], optional: true }
plugins:
  - auth
  - rate-limit
  - model
  - pricing
  - proxy: { path: /tools/, vendor: tools, price: 2 }
  - proxy: { path: /maps/, vendor: maps }
`

t.test("what is left out for want of a secret is told, and its proxy line skipped", async t => {
  const { run, json } = cli(t, partly, { TOOLS_KEY: "k" })
  const { code, out } = await run("check")
  t.equal(code, 0)
  t.match(out, /^left out: acme \(ACME_KEY is not set\), 4 models$/m)
  t.match(out, /^left out: maps \(A, B are not set\), 0 models$/m)
  t.match((await json("check")).left, [{ vendor: "acme", unset: ["ACME_KEY"], models: 4 }, { vendor: "maps" }])
  for (const name of ["small", "tiny"]) {
    const { errors } = await run(`explain POST /chat/completions --model ${name}`)
    t.equal(errors, `tollgate: ${name} is left out, with its vendors: acme (ACME_KEY is not set)`)
  }
  t.match((await run("explain POST /chat/completions --model nope")).errors, "the catalog has no model nope")
  t.match((await run("explain POST /maps/")).errors, "no route takes /v1/gateway/maps/")
})

t.test("commands on the store need its secret and no vendor's", async t => {
  const real = gatewayYaml.replace("sandbox: true", "ops: { host: 127.0.0.1, token: { env: OPS_TOKEN } }")
  const { run } = cli(t, real)
  t.equal((await run("org create north --name North")).code, 0)
  t.equal((await run("member create north alice --credits 3")).code, 0)
  t.equal((await run("org models north disable large")).code, 0)
  t.match((await run("credits show north alice")).out, "3")
  for (const line of ["check", "explain POST /v1/gateway/chat/completions --model small"]) {
    const refused = await run(line)
    t.equal(refused.code, 1, line)
    t.match(refused.errors, "environment variable ACME_KEY is missing or empty")
  }
  const redis = cli(
    t,
    real.replace(
      "{ kind: sqlite, path: ./tollgate.db, durability: process }",
      "{ kind: redis, url: { env: REDIS_URL } }",
    ),
  )
  t.match((await redis.run("org list")).errors, "environment variable REDIS_URL is missing or empty")
})

t.test("explain tells the vendor, the secret and the price of a route that sells one thing", async t => {
  const { json, run } = cli(t, partly, { TOOLS_KEY: "k" })
  t.match(await json("explain POST /tools/x"), {
    model: "proxy.tools",
    taken: true,
    targets: [{ vendor: "tools", secrets: ["TOOLS_KEY"] }],
    price: [{ item: "requests", basis: /^2/ }],
  })
  t.match((await run("explain POST /tools/x")).out, /tools .*TOOLS_KEY/)
})
