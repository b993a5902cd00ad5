/** Vendors and their adapters: what stops a start, at which line, and an adapter that a plugin brings. */

import t, { type Test } from "tap"
import type { Adapter, Plugin } from "../../core/index.ts"
import { type TestGatewayOptions, testGateway } from "../../core/testing.ts"
import openai from "../../plugins/vendors/openai/index.ts"
import { chatAnswer, fakeVendor, json } from "../fixtures/product.ts"

const open = async (t: Test, options: TestGatewayOptions) => {
  const gateway = await testGateway(options)
  t.teardown(() => gateway.close())
  return gateway
}

const refused = (t: Test, options: TestGatewayOptions, message: RegExp) => t.rejects(open(t, options), { message })

const vendor = (more: object) => ({ vendors: { host: { origin: "https://sandbox.invalid", secrets: [], ...more } } })
const catalog = (model: object) => ({ models: { m: { targets: [{ vendor: "host", model: "m" }], ...model } } })
const llm = catalog({ type: "llm" })

t.test("an adapter that nobody brings is told at its line, with those that there are", async t => {
  const advice =
    /there is no adapter opnai: it is neither built in, nor an installed package, nor brought by a plugin; built in are .*openai.*; for the wire of chat completions write adapter: openai$/
  await refused(
    t,
    { gateway: vendor({ adapter: "opnai" }), catalog: llm },
    new RegExp(`gateway\\.yaml:\\d+:\\d+ vendors\\.host\\.adapter: ${advice.source}`),
  )
  await refused(t, { gateway: vendor({}), catalog: llm }, /vendors\.host\.adapter: there is no adapter host: it is/)
  await refused(t, { gateway: vendor({ adapter: "fs" }), catalog: llm }, /there is no adapter fs: it is neither/)
})

t.test("an adapter file that is not there, does not load or exports no adapter is told at its line", async t => {
  const folder = t.testdir({
    "throws.js": "throw new Error('at load')",
    "half.js": "export default { name: 'half', authorise() {}, fault() {}, apis: { chat: {} } }",
    "none.js": "export const adapter = {}",
  })
  const cases: readonly (readonly [string, RegExp])[] = [
    ["nope.ts", /cannot be loaded: Cannot find module/],
    ["throws.js", /cannot be loaded: at load/],
    ["half.js", /exports no adapter by default: missing or of the wrong kind: apis, dialect\.name, .*fields\.query/],
    ["none.js", /exports no adapter by default/],
  ]
  for (const [file, message] of cases) {
    const place = `gateway\\.yaml:\\d+:\\d+ vendors\\.host\\.adapter: .*${file} ${message.source}`
    await refused(t, { gateway: vendor({ adapter: `${folder}/${file}` }), catalog: llm }, new RegExp(place))
  }
})

t.test("options of an adapter are checked by its schema, with their place", async t => {
  const options = (adapter: string, options: object) => ({
    gateway: vendor({ adapter, options }),
    catalog: { models: {} },
  })
  await refused(
    t,
    options("openai", { api_pth: "/v9" }),
    /gateway\.yaml:\d+:\d+ vendors\.host\.options\.api_pth: Extra inputs are not permitted/,
  )
  await refused(
    t,
    options("openai", { api_path: 9 }),
    /vendors\.host\.options\.api_path: Input should be a valid string/,
  )
  await refused(t, options("anthropic", { api_path: "/v9" }), /vendors\.host\.options\.api_path: Extra inputs/)
  await refused(t, options("http", { auth: { feild: "x" } }), /vendors\.host\.options\.auth\.feild: Extra inputs/)
  await open(t, options("http", { auth: { field: "x-key", prefix: "" }, to_vendor: ["x-*"], to_client: ["x-took"] }))
  await open(t, options("openai", { api_path: "" }))
})

t.test("a model that a vendor of it cannot serve stops the start at its line", async t => {
  const cases: readonly (readonly [string, object, RegExp])[] = [
    ["anthropic", { type: "embedding" }, /the type is embedding, but the adapter anthropic of its vendor host cannot/],
    ["anthropic", { type: "rerank" }, /cannot serve POST \/rerank\//],
    ["anthropic", { type: "guard" }, /cannot serve POST \/guard\//],
    ["cohere", { type: "llm" }, /cannot serve POST \/chat\/completions\//],
    ["voyage", { type: "decision" }, /cannot serve POST \/decisions\//],
  ]
  for (const [adapter, model, message] of cases) {
    const place = new RegExp(`catalog\\.yaml:\\d+:\\d+ models\\.m: .*${message.source}`)
    await refused(t, { gateway: vendor({ adapter }), catalog: catalog(model) }, place)
  }
  const guard = { type: "guard", capabilities: ["chat"] }
  await open(t, { gateway: vendor({ adapter: "anthropic" }), catalog: catalog(guard) })
  const unserved = { ...vendor({ adapter: "anthropic" }), endpoints: ["chat", "credits"] }
  await open(t, { gateway: unserved, catalog: catalog({ type: "embedding" }) })
})

const dialect = { ...openai.dialect, name: "mine" }
const mine: Adapter = { ...openai, name: "mine", dialect, options: { type: "object", properties: { path: {} } } }
const sign = () => ({ sign: "content" }) as const
const bringing = (adapter: Adapter): Plugin => ({ name: "bringer", api: 1, setup: host => host.adapter(adapter) })

t.test("a plugin brings an adapter, and vendors that name it are called with it", async t => {
  const upstream = await fakeVendor(t)
  upstream.answer = (_, response) => json(response, 200, chatAnswer)
  const gateway = await open(t, {
    env: { K: "secret" },
    gateway: {
      sandbox: false,
      vendors: { host: { adapter: "mine", origin: upstream.origin, secrets: [{ env: "K" }], options: { path: 1 } } },
    },
    catalog: catalog({ type: "llm", price: { input: "1 per 1K tokens", output: "1 per 1K tokens" } }),
    plugins: [bringing(mine)],
  })
  const answer = await gateway.call("/chat/completions/", { model: "m", messages: [{ role: "user", content: "hi" }] })
  t.equal(answer.status, 200, await answer.text())
  t.match(upstream.received[0], { headers: { authorization: "Bearer secret" } })
})

t.test("quantities that are none are not billed as told, hold up no charge and spoil no sum", async t => {
  const upstream = await fakeVendor(t)
  let usage: object = {}
  const chat = { usage: () => ({ whole() {}, event() {}, report: () => ({ outputBytes: 7, usage }) }), sign }
  const gateway = await open(t, {
    gateway: { sandbox: false, ...vendor({ adapter: "mine", origin: upstream.origin, secrets: [{ env: "K" }] }) },
    env: { K: "secret" },
    catalog: catalog({ type: "llm", price: { input: "1 per 1K tokens", output: "1 per 1K tokens" } }),
    plugins: [bringing({ ...mine, options: {}, apis: { chat } })],
  })
  const call = () => gateway.call("/chat/completions/", { model: "m", messages: [{ role: "user", content: "hi" }] })
  const odd: readonly unknown[] = [Number.NaN, Number.POSITIVE_INFINITY, 1e300, 2 ** 53, -5, "12", 12n, null, {}]
  for (const input of odd) {
    usage = { input, output: 5 }
    t.equal((await call()).headers.get("x-credits-charged"), "0.008", `input ${String(input)} is estimated`)
  }
  usage = { input: 5, output: 5, seconds: Number.NaN }
  t.equal((await call()).headers.get("x-credits-charged"), "0.01", "what nobody pays for takes nothing with it")
  const calls = odd.length + 1
  t.match(await gateway.balance(), { held: 0, spent: odd.length * 8_000 + 10_000 })
  const { total } = (await (await gateway.call("/usage/")).json()) as { total: object }
  t.match(total, { requests: calls, input_tokens: odd.length * 3 + 5, output_tokens: calls * 5, seconds: 0 })
  t.match(await gateway.metrics(), `tollgate_vendor_surprises_total{vendor="host",kind="bad_count"} ${calls}\n`)
})

t.test("an adapter's or a dialect's name that is taken is refused", async t => {
  const options = (adapter: Adapter) => ({ plugins: [bringing(adapter)] })
  await refused(t, options({ ...mine, name: "openai" }), /plugin bringer: host\.adapter: the name openai is taken/)
  await refused(
    t,
    options({ ...mine, dialect: { ...dialect, name: "openai" } }),
    /plugin bringer: host\.dialect: the name openai is taken/,
  )
  await open(t, options({ ...mine, dialect: openai.dialect }))
})
