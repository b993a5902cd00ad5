/** `check` and `explain`: what a configuration is, what it would do, and what is wrong with it. */
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import t from "tap"
import { runCli } from "../../core/cli/program.ts"
import { cli, gatewayYaml } from "../fixtures/cli.ts"

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

t.test("check names the models that no route takes", async t => {
  const { run, json } = cli(t, `${gatewayYaml}endpoints: [responses, models]\n`)
  t.match((await run("check")).out, /^no route takes \(llm\): large spread small$/m)
  t.same((await json("check")).untaken, ["large", "spread", "small"])
  t.same((await cli(t).json("check")).untaken, [])
})

t.test("a search model is taken by the path of its own word alone", async t => {
  const gateway = gatewayYaml.replace("vendors:", 'vendors:\n  exa: { origin: "https://api.exa.example", secrets: [] }')
  const { json, file } = cli(t, gateway)
  const model = (word: string) => `{ type: search, targets: [{ vendor: exa, model: ${word} }] }`
  writeFileSync(join(dirname(file), "catalog.yaml"), `models: { s: ${model("search")}, typo: ${model("serach")} }`)
  t.match(await json("explain POST /vendor-c/search --model s"), {
    taken: true,
    takenBy: ["POST /v1/gateway/vendor-c/search/"],
  })
  t.match(await json("explain POST /vendor-c/answer --model s"), { taken: false })
  t.same((await json("check")).untaken, ["typo"])
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
