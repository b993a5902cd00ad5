/** What stops a start, with a reason to act on; and what every step of a started gateway sees. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import t, { type Test } from "tap"
import type { Plugin, Step } from "../../core/index.ts"
import { type TestGatewayOptions, testGateway } from "../../core/testing.ts"

const open = async (t: Test, options: TestGatewayOptions) => {
  const gateway = await testGateway(options)
  t.teardown(() => gateway.close())
  return gateway
}

const refused = (t: Test, options: TestGatewayOptions, message: RegExp) => t.rejects(open(t, options), { message })

const stepping = (step: Step): Plugin => ({ name: "probe", api: 1, setup: host => host.use(step) })

const guards = ["metrics", "access-log", "edge", "body-size", "auth", "rate-limit", "model", "pricing"]
const without = (...names: string[]) => ({ plugins: guards.filter(name => !names.includes(name)) })

t.test("a route that takes a key stops the start when nobody says who calls", t =>
  refused(t, { gateway: { plugins: ["edge"], endpoints: ["credits"] } }, /no plugin in its chain provides "principal"/),
)

t.test("a route that charges stops the start when nobody holds credits", t =>
  refused(t, { gateway: without("pricing") }, /charges, but no plugin in its chain provides "quote"/),
)

t.test("a step that comes before what it needs stops the start, and is named", async t => {
  const plugins = ["auth", "pricing", "model", "rate-limit"]
  await refused(
    t,
    { gateway: { plugins } },
    /gateway\.yaml:\d+:\d+ plugins\.\d+: .*plugin pricing needs "model", which no plugin above it provides/,
  )
})

t.test("a plugin of another api, without a name, or with a name that is none, stops the start", async t => {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-plugins-"))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  const bad: readonly (readonly [string, string, RegExp])[] = [
    ["old.js", "export default { name: 'old', api: 2, setup() {} }", /speaks plugin api 2; this gateway speaks api 1/],
    ["none.js", "export default { api: 1 }", /is not a plugin/],
    ["name.js", "export default { name: 'Not A Name', api: 1, setup() {} }", /must match/],
    ["throws.js", "throw new Error('at load')", /cannot be loaded: at load/],
  ]
  for (const [name, text, message] of bad) {
    await refused(t, { gateway: { plugins: [...guards, await file(name, text)] } }, message)
  }
  await refused(t, { gateway: { plugins: [...guards, "no-such-plugin"] } }, /neither built in nor an installed package/)
})

t.test("an option that a plugin does not know stops the start with file, line and path", t =>
  refused(
    t,
    { gateway: { plugins: [...without("edge").plugins, { edge: { nonsense: 1 } }] } },
    /gateway\.yaml:\d+:\d+ .*edge/,
  ),
)

t.test("a guard among the endpoints, and an endpoint that is there already, are told at their lines", async t => {
  await refused(
    t,
    { gateway: { endpoints: ["chat", "auth"] } },
    /gateway\.yaml:\d+:\d+ endpoints\.1: plugin auth is not an endpoint; list it under plugins$/,
  )
  await refused(
    t,
    { gateway: { plugins: [...guards, "chat"] } },
    /gateway\.yaml:\d+:\d+ plugins\.8: Two routes for POST \/chat\/completions\/, of plugins chat and chat$/,
  )
})

t.test("a guard that is listed twice is told at its second line", async t => {
  for (const guard of ["metrics", "rate-limit"]) {
    const plugins = [...guards, guard]
    await refused(
      t,
      { gateway: { plugins } },
      new RegExp(`gateway\\.yaml:\\d+:\\d+ plugins\\.8: ${guard} is listed twice: remove one of the two lines$`),
    )
  }
})

t.test("prefixes of a family that no plugin knows stop the start at their key", async t => {
  const mounts = { "vendor-a": ["vendor-a"], "vendor-x": ["x"] }
  await refused(
    t,
    { gateway: { mounts } },
    /gateway\.yaml:\d+:\d+ mounts\.vendor-x: expected a native family, one of: vendor-a, vendor-b, vendor-c$/,
  )
  const asks: Plugin = { name: "asks", api: 1, setup: host => void host.mounts("vendor-x") }
  await open(t, { gateway: { mounts }, plugins: [asks] })
  await open(t, { gateway: { mounts: { "vendor-b": ["google"] }, endpoints: ["chat"] } })
})

t.test("a model of a relayed family without a vendor that speaks it stops the start", t =>
  refused(
    t,
    {
      gateway: { mounts: { "vendor-a": ["vendor-a"] } },
      catalog: {
        models: { lost: { type: "llm", family: "anthropic", targets: [{ vendor: "openai", model: "x" }] } },
      },
    },
    /catalog\.yaml:\d+:\d+ models\.lost: the family is anthropic, but no target speaks anthropic/,
  ),
)

t.test("two routes on one path, and two steps that bill, are refused", async t => {
  const twice: Plugin = {
    name: "twice",
    api: 1,
    setup: host =>
      host.route({
        method: "GET",
        path: "/credits/",
        access: "public",
        dialect: "plain",
        model: "none",
        charge: "none",
        limit: "common",
        handle: call => call.reply(200, {}),
      }),
  }
  await t.rejects(
    open(t, { plugins: [twice] }),
    /gateway\.yaml:1:1 given plugins\.twice: Two routes for GET \/credits\//,
  )
})

t.test("a step sees every route that its `on` names, native ones included, and none besides", async t => {
  const seen: string[] = []
  const probe = stepping({
    on: route => route.charge === "usage",
    run: (call, next) => {
      seen.push(call.route.path)
      return next()
    },
  })
  const gateway = await open(t, { plugins: [probe] })
  const chained = gateway.gateway.routes.filter(({ chain }) => chain.includes("probe")).map(({ path }) => path)
  const charging = gateway.gateway.routes.filter(({ route }) => route.charge === "usage").map(({ path }) => path)
  t.same(chained, charging)
  t.ok(charging.length >= 5)
  await (
    await gateway.call("/chat/completions/", { model: "test-chat", messages: [{ role: "user", content: "hi" }] })
  ).text()
  await (await gateway.call("/credits/")).text()
  t.same(seen, ["/chat/completions/"])
})

t.test("a step that refuses before next() keeps the vendor out of it, and nothing is held", async t => {
  const block = stepping({ run: async call => call.reply(418, { detail: "no" }) })
  const gateway = await open(t, { plugins: [block] })
  const response = await gateway.call("/chat/completions/", {
    model: "test-chat",
    messages: [{ role: "user", content: "hi" }],
  })
  t.equal(response.status, 418)
  t.match(
    await gateway.metrics(),
    /tollgate_upstream_requests_total\{[^}]*\} 0|^((?!tollgate_upstream_requests_total\{).)*$/s,
  )
  t.match(await gateway.balance(), { held: 0, spent: 0 })
})

t.test("a step that throws, or calls next() twice, ends its own call with 500 and gives its hold back", async t => {
  let mode: "throw" | "twice" | "fine" = "throw"
  const clumsy = stepping({
    run: async (_call, next) => {
      if (mode === "throw") throw new Error("clumsy: secret-detail")
      const outcome = await next()
      return mode === "twice" ? next() : outcome
    },
  })
  const gateway = await open(t, { plugins: [clumsy] })
  const ask = () => gateway.call("/credits/")
  const thrown = await ask()
  t.equal(thrown.status, 500)
  t.notMatch(await thrown.text(), "secret-detail")
  t.ok(
    gateway.lines.some(line => JSON.stringify(line).includes("clumsy: secret-detail")),
    "the log has the cause",
  )
  t.match(await gateway.metrics(), /tollgate_plugin_errors_total\{plugin="probe"\} 1/)
  mode = "fine"
  t.equal((await ask()).status, 200)
})

t.test("a plugin in plain JavaScript that forgets to return what next() gave is named in the log", async t => {
  const forgetful = stepping({
    run: (async (_call: unknown, next: () => Promise<unknown>) => {
      await next()
    }) as unknown as Step["run"],
  })
  const gateway = await open(t, { plugins: [forgetful] })
  await (await gateway.call("/credits/")).text().catch(() => "cut")
  t.ok(gateway.lines.some(line => JSON.stringify(line).includes("plugin probe must return what next() gave")))
})

t.test("the counters that alarms watch stand at zero before their first event", async t => {
  const gateway = await open(t, { gateway: { plugins: [...guards, { proxy: { path: "/x/", vendor: "openai" } }] } })
  const metrics = await gateway.metrics()
  for (const series of [
    'usage_missing_total{vendor="openai",model="test-chat"}',
    'usage_unpriced_total{vendor="openai",model="test-chat"}',
    'usage_unpriced_total{vendor="openai",model="proxy.x"}',
    'plugin_errors_total{plugin="pricing"}',
    'plugin_errors_total{plugin="chat"}',
    'config_reloads_total{outcome="applied"}',
    'config_reloads_total{outcome="refused"}',
  ])
    t.ok(metrics.includes(`tollgate_${series} 0\n`), series)
})
