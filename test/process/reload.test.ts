import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import t, { type Test } from "tap"
import { until } from "../fixtures/until.ts"
import {
  type GatewayProcess,
  processCatalog,
  processGateway,
  type Site,
  type Tree,
  vendorsAt,
} from "./gateway-process.ts"
import { call, chat, countBy, ledgerFindings, right, serve, siteOf } from "./serve.ts"

/** Signals the process and resolves with what it says became of it. */
const reload = async (gateway: GatewayProcess): Promise<string> => {
  const said = () => gateway.lines.filter(line => /"msg":"configuration (reloaded|refused)/.test(line))
  const before = said().length
  gateway.signal("SIGHUP")
  await until(() => said().length > before)
  return said().at(-1) ?? ""
}

/** Calls without a pause until it is told to stop; resolves with all answers. */
const underLoad = (gateway: GatewayProcess) => {
  const answers: { readonly status: number; readonly text: string }[] = []
  let over = false
  const caller = async (at: number): Promise<void> => {
    while (!over) answers.push(await chat(gateway, { stream: at % 2 === 0 }))
  }
  const calling = Promise.all(Array.from({ length: 6 }, (_, at) => caller(at)))
  return {
    answers,
    async stop() {
      over = true
      await calling
      return answers
    },
  }
}

const metric = async ({ ops }: GatewayProcess, name: string): Promise<string | undefined> =>
  new RegExp(`^${name} (\\S+)`, "m").exec(await (await fetch(`${ops}/metrics`)).text())?.[1]

const withLimit = (max: string): Tree => {
  const gateway = processGateway()
  const plugins = (gateway.plugins as unknown[]).map(one => (one === "body-size" ? { "body-size": { max } } : one))
  return { ...gateway, plugins }
}

/** What an operator may get wrong, and what is said about it. */
const mistakes: readonly {
  readonly what: string
  readonly change: Parameters<Site["write"]>[0]
  readonly says: RegExp
}[] = [
  { what: "an unknown key", change: { gateway: processGateway({ listens: {} }) }, says: /listens/ },
  { what: "an unknown option", change: { gateway: processGateway({ plugins: [{ edge: { no: 1 } }] }) }, says: /edge/ },
  {
    what: "a secret that is not there",
    change: { gateway: { ...processGateway({ sandbox: false }), vendors: vendorWithout() } },
    says: /NOT_THERE/,
  },
  { what: "a price without a unit", change: { catalog: pricedAt({ input: "a lot" }) }, says: /price/ },
  {
    what: "another store",
    change: { gateway: processGateway({ store: { kind: "sqlite", path: "./other.db" } }) },
    says: /store needs a restart/,
  },
]

function vendorWithout(): Tree {
  return { openai: { adapter: "openai", origin: "https://vendor.example", secrets: [{ env: "NOT_THERE" }] } }
}

function pricedAt(price: object): Tree {
  const { gpt, ...others } = processCatalog.models as Record<string, Tree>
  return { models: { ...others, gpt: { ...gpt, price } } }
}

const open = async (t: Test): Promise<{ readonly site: Site; readonly gateway: GatewayProcess }> => {
  const site = siteOf(t)
  return { site, gateway: await serve(t, site) }
}

t.test("good and bad reloads under load fail no call, and a bad one changes nothing", async t => {
  const { site, gateway } = await open(t)
  const load = underLoad(gateway)
  for (const { what, change, says } of mistakes) {
    site.write({ gateway: processGateway(), catalog: processCatalog, ...change })
    t.match(await reload(gateway), says, what)
    site.write({ gateway: withLimit("1MB"), catalog: pricedAt({ input: "1 per 1K tokens" }) })
    t.match(await reload(gateway), /configuration reloaded/)
    site.write({ gateway: processGateway(), catalog: processCatalog })
    t.match(await reload(gateway), /configuration reloaded/)
  }
  const answers = await load.stop()
  t.same(
    countBy(answers, ({ status }) => status),
    { 200: answers.length },
  )
  t.ok(answers.length > 0, `${answers.length} calls`)
  t.equal(await metric(gateway, 'tollgate_config_reloads_total{outcome="refused"}'), String(mistakes.length))
  t.equal(await metric(gateway, 'tollgate_config_reloads_total{outcome="applied"}'), String(2 * mistakes.length))
  gateway.signal("SIGTERM")
  await once(gateway.child, "exit")
  t.same(await ledgerFindings(site), right)
})

t.test("options of plugins and prices change at once", async t => {
  const { site, gateway } = await open(t)
  const before = await chat(gateway)
  const large = { messages: [{ role: "user", content: "x".repeat(2_000_000) }] }
  t.equal((await chat(gateway, large)).status, 200)
  site.write({
    gateway: withLimit("1MB"),
    catalog: pricedAt({ input: "2000 per 1M tokens", output: "4000 per 1M tokens" }),
  })
  t.match(await reload(gateway), /reloaded/)
  t.equal((await chat(gateway, large)).status, 413)
  t.equal((await chat(gateway)).micros, 2 * before.micros)
})

t.test("limits, time zone and watching change with a reload too", async t => {
  const { site, gateway } = await open(t)
  const long = { messages: [{ role: "user", content: "x".repeat(4_000) }] }
  const day = async () =>
    JSON.parse((await call(gateway, "/usage/?by=day")).text) as { to: string; data: [{ day: string }] }
  t.equal((await chat(gateway, long)).status, 200)
  // Twenty-five hours lie between these two: it is never the same day there.
  const [early, late] = ["Pacific/Kiritimati", "Pacific/Pago_Pago"]
  const change = { limits: { bodies_in_memory: "1KB" }, watch: true, catalog: "./other.yaml" }
  writeFileSync(join(site.folder, "other.yaml"), JSON.stringify(processCatalog))
  site.write({ gateway: processGateway({ ...change, timezone: early }) })
  t.match(await reload(gateway), /reloaded/)
  t.equal((await chat(gateway, long)).status, 503)
  t.equal((await chat(gateway)).status, 200)
  const before = await day()
  t.equal(before.data.at(-1)?.day, before.to)
  site.write({ gateway: processGateway({ ...change, timezone: late }) })
  t.match(await reload(gateway), /reloaded/)
  t.equal((await chat(gateway)).status, 200)
  t.not((await day()).to, before.to)
  const applied = () => metric(gateway, 'tollgate_config_reloads_total{outcome="applied"}')
  const times = Number(await applied())
  writeFileSync(join(site.folder, "other.yaml"), JSON.stringify({ ...processCatalog, overlays: {} }))
  await until(async () => Number(await applied()) > times)
})

t.test("a call that began before a reload ends at the price that it was quoted", async t => {
  const { site, gateway } = await open(t)
  const whole = await chat(gateway)
  const spent = async (): Promise<number> => {
    const usage = JSON.parse((await call(gateway, "/usage/")).text) as { readonly total: { readonly credits: number } }
    return Math.round(usage.total.credits * 1_000_000)
  }
  const answer = await fetch(`${gateway.url}/chat/completions/`, {
    method: "POST",
    headers: { authorization: "Bearer tg_process_test_key_0001", "content-type": "application/json" },
    body: JSON.stringify({
      model: "gpt",
      max_tokens: 100,
      stream: true,
      messages: [{ role: "user", content: "Count to 9" }],
    }),
  })
  site.write({ catalog: pricedAt({ input: "1000 per 1K tokens", output: "1000 per 1K tokens" }) })
  t.match(await reload(gateway), /reloaded/)
  t.match(await answer.text(), /\[DONE\]/)
  t.equal(await spent(), 2 * whole.micros)
})

t.test("a file that only a refused configuration names is watched: mended, or made, it serves", async t => {
  const withSecrets = (secret: object): Tree => {
    const vendors = Object.entries(vendorsAt("https://vendor.example") as Record<string, Tree>)
    return Object.fromEntries(vendors.map(([name, vendor]) => [name, { ...vendor, secrets: [secret] }]))
  }
  const outside = { sandbox: false, watch: true, bootstrap: undefined, vendors: withSecrets({ env: "VENDOR_KEY" }) }
  const site = siteOf(t, outside)
  const gateway = await serve(t, site, { env: { VENDOR_KEY: "any" } })
  const next = async (outcome: string, act: () => void): Promise<void> => {
    const count = async () => Number(await metric(gateway, `tollgate_config_reloads_total{outcome="${outcome}"}`))
    const before = await count()
    act()
    await until(async () => (await count()) > before)
  }
  const put = (name: string, text: string): void => writeFileSync(join(site.folder, name), text)
  const other = { ...outside, catalog: "./other.yaml" }
  put("other.yaml", JSON.stringify(pricedAt({ input: "a lot" })))
  await next("refused", () => site.write({ gateway: processGateway(other) }))
  await next("applied", () => put("other.yaml", JSON.stringify(processCatalog)))
  const named = { ...other, vendors: withSecrets({ file: "./vendor-key" }) }
  await next("refused", () => site.write({ gateway: processGateway(named) }))
  await next("applied", () => put("vendor-key", "any"))
})
