/** A conversation stays with one target and one secret, because the vendors' prompt caches live there. */

import t, { type Test } from "tap"
import { testGateway } from "../../core/testing.ts"
import { answering, type FakeVendor, fakeVendor } from "../fixtures/vendor.ts"

const answer = JSON.stringify({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "ok" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
})

const three = ["K1", "K2", "K3"]

const open = async (
  t: Test,
  vendors: readonly FakeVendor[],
  weights: readonly (number | undefined)[],
  secrets: readonly string[] = three,
) => {
  const env = Object.fromEntries(secrets.map(name => [name, `sk-${name}`]))
  const gateway = await testGateway({
    env,
    gateway: {
      sandbox: false,
      mounts: { "vendor-a": ["vendor-a"] },
      vendors: Object.fromEntries(
        vendors.map(({ origin }, i) => [
          `v${i}`,
          { adapter: "anthropic", origin, secrets: Object.keys(env).map(name => ({ env: name })) },
        ]),
      ),
    },
    catalog: {
      models: {
        m: {
          type: "llm",
          family: "anthropic",
          targets: vendors.map((_, i) => ({
            vendor: `v${i}`,
            model: "m",
            ...(weights[i] === undefined ? {} : { weight: weights[i] }),
          })),
          max_output: 1000,
          price: { input: "1 per 1M tokens", output: "1 per 1M tokens" },
        },
      },
    },
  })
  t.teardown(() => gateway.close())
  return (messages: readonly string[]) =>
    gateway.call("/vendor-a/v1/messages/", {
      model: "m",
      max_tokens: 5,
      messages: messages.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content })),
    })
}

const opening = (n: number): string => `conversation ${n}: ${"lorem ipsum ".repeat(120)}`

const secretsSeen = (vendor: FakeVendor): string[] => vendor.requests.map(({ headers }) => headers["x-api-key"] ?? "")

t.test("each turn of a conversation meets the same secret, and conversations spread over the secrets", async t => {
  const vendor = await fakeVendor(t, answering({ body: answer }))
  const call = await open(t, [vendor], [undefined])
  for (let n = 0; n < 12; n++) {
    const turns = [opening(n)]
    for (let turn = 0; turn < 3; turn++) {
      t.equal((await call(turns)).status, 200)
      turns.push("ok", `and then ${turn}?`)
    }
  }
  const seen = secretsSeen(vendor)
  for (let n = 0; n < 12; n++) t.equal(new Set(seen.slice(n * 3, n * 3 + 3)).size, 1)
  t.ok(new Set(seen).size > 1)
})

for (const secrets of [three, ["K1"]]) {
  t.test(
    `each turn meets the same target, which conversations share by weight (${secrets.length} secrets)`,
    async t => {
      const a = await fakeVendor(t, answering({ body: answer }))
      const b = await fakeVendor(t, answering({ body: answer }))
      const call = await open(t, [a, b], [3, 1], secrets)
      for (let n = 0; n < 24; n++) {
        const before = a.requests.length
        for (const turns of [[opening(n)], [opening(n), "ok", "more"]]) t.equal((await call(turns)).status, 200)
        const grown = a.requests.length - before
        t.ok(grown === 0 || grown === 2, "both turns went the same way")
      }
      t.ok(a.requests.length > b.requests.length)
      t.ok(b.requests.length > 0)
    },
  )
}

t.test("a secret that fails is left for another, and found again when it is healthy", async t => {
  let failing: string | undefined
  const vendor = await fakeVendor(t, exchange => {
    const bad = exchange.request.headers["x-api-key"] === failing
    return answering(bad ? { status: 529, body: "{}" } : { body: answer })(exchange)
  })
  const call = await open(t, [vendor], [undefined])
  t.equal((await call([opening(1)])).status, 200)
  const home = secretsSeen(vendor)[0] as string
  failing = home
  t.equal((await call([opening(1)])).status, 200)
  t.same(secretsSeen(vendor).slice(1, 2), [home])
  t.not(secretsSeen(vendor)[2], home)
  failing = undefined
  t.equal((await call([opening(1)])).status, 200)
  t.equal(secretsSeen(vendor).at(-1), home)
})
