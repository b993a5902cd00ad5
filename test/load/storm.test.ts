import { hash } from "node:crypto"
import { readdirSync } from "node:fs"
import t from "tap"
import { until } from "../fixtures/until.ts"
import { memberKey, model, organisation } from "../process/gateway-process.ts"
import { call, ledgerFindings, right, serve, siteOf } from "../process/serve.ts"
import { numberAfter, randomOf } from "./random.ts"
import { startStormVendor, storm } from "./storm.ts"

/** `--requests` and `--seed` on the command line are others. */
const requests = numberAfter("requests", 10_000)
const seed = numberAfter("seed", Date.now() % 1_000_000_000)

t.test(`${requests} broken connections on both sides leave a gateway that is well`, { timeout: 600_000 }, async t => {
  t.comment(`seed ${seed}`)
  const random = randomOf(seed)
  const vendor = await startStormVendor(random)
  t.teardown(() => vendor.close())
  const env = { VENDOR_KEY: "vendor-secret" }
  const site = siteOf(
    t,
    {
      sandbox: false,
      vendors: {
        anthropic: {
          origin: vendor.origin,
          // So many that the breaker leaves some at work.
          secrets: Array.from({ length: 20 }, (_, at) => ({ env: "VENDOR_KEY", name: `s${at}` })),
          timeouts: { connect: "2s", first_byte: "3s", idle: "3s" },
        },
      },
      bootstrap: organisation({ alice: { credits: 10_000_000, keys: [`sha256:${hash("sha256", memberKey(1))}`] } }),
    },
    { models: { claude: model("anthropic") } },
  )
  const gateway = await serve(t, site, { env })
  const descriptors = (): number => readdirSync(`/proc/${gateway.pid}/fd`).length
  t.equal((await call(gateway, "/models/")).status, 200)
  const { left } = await storm(gateway.url, memberKey(1), { random, requests, atOnce: 40, patienceMs: 30_000 })
  t.equal(left, 0, "each connection came to its end")

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${gateway.ops}/metrics`)).text()
    return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, "gm"))].reduce(
      (sum, one) => sum + Number(one[1]),
      0,
    )
  }
  const attempts = await metric("tollgate_upstream_requests_total")
  t.comment(`${attempts} attempts at the vendor`)
  t.ok(attempts > requests / 4, "the breaker did not keep the storm from the vendor")
  await until(async () => (await metric("tollgate_ledger_holds")) === 0)
  t.equal(await metric("tollgate_plugin_errors_total"), 0)
  t.equal(await metric("tollgate_requests_in_flight"), 0)
  t.equal((await call(gateway, "/credits/")).status, 200, "it serves")
  t.same(
    gateway.complaints.filter(line => /unhandled|uncaught|internal/i.test(line)),
    [],
  )
  t.equal(gateway.errors(), "")
  t.same(await ledgerFindings(site, env), right)
  await until(() => descriptors() < 200)
})
