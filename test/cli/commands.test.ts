/** The commands on the store: what they print, what they change, how they refuse. */
import { createHash } from "node:crypto"
import { existsSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import t from "tap"
import { version } from "../../core/version.ts"
import { catalogYaml, cli, gatewayYaml, withMember } from "../fixtures/cli.ts"

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

t.test("a file that was cut to nothing is no store, and so no ledger that is right", async t => {
  const { run, file } = cli(t)
  writeFileSync(join(dirname(file), "tollgate.db"), "")
  t.match(await run("ledger check"), { code: 1, errors: /there is no store at/ })
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

t.test("a model that got another name is switched by each of its names", async t => {
  const { json, file } = await withMember(t)
  const catalog = join(dirname(file), "catalog.yaml")
  await json("org models north disable small")
  writeFileSync(catalog, catalogYaml.replace("  small:", "  newer:").replace("tiny: small", "small: newer"))
  t.same((await json("org models north disable newer")).disabled, ["small"], "it is off already")
  t.same((await json("org models north enable newer")).disabled, [])
  await json("org models north only large newer")
  writeFileSync(catalog, catalogYaml.replace("tiny: small", "newer: small"))
  t.same((await json("org models north disable small")).models, ["large"])
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
  t.equal((await run("org overlay north patner")).errors, "tollgate: the catalog has no overlay patner; it has partner")
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
