/** What is known of a credential holds for that credential: what an operator mends serves with the next reload. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import type { ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as turn } from "node:timers/promises"
import t, { type Test } from "tap"
import { chatAnswer, type FakeVendor, fakeVendor, json, openProduct, type Product } from "../fixtures/product.ts"
import { refusedOrigin } from "../fixtures/vendor.ts"
import { sample } from "../fixtures/wires.ts"

const model = (vendor: string) => ({
  type: "llm",
  targets: [{ vendor, model: "vendor-model" }],
  max_output: 1000,
  price: { input: "1000 per 1M tokens", output: "2000 per 1M tokens" },
})
const catalog = { models: { one: model("one"), two: model("two") } }

const good = "the-good-key"

/** Takes the good key only. */
const strict: FakeVendor["answer"] = ({ headers }, response) =>
  headers.authorization === `Bearer ${good}`
    ? json(response, 200, chatAnswer)
    : json(response, 401, { error: { message: "Incorrect API key provided", type: "invalid_request_error" } })

interface Opened {
  readonly product: Product
  readonly vendor: FakeVendor
  /** Writes the secret files of both vendors, which bear one name. */
  readonly rotate: (one: string, two?: string) => Promise<void>
  readonly at: (origin: string) => { readonly vendors: object }
}

const open = async (t: Test, key: string, origin?: string): Promise<Opened> => {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-reload-"))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const rotate: Opened["rotate"] = async (one, two = one) => {
    await writeFile(join(folder, "one"), one)
    await writeFile(join(folder, "two"), two)
  }
  const secrets = (name: string) => [{ file: join(folder, name), name: "key" }]
  const at = (where: string) => ({
    vendors: {
      one: { adapter: "openai", origin: where, secrets: secrets("one") },
      two: { adapter: "openai", origin: where, secrets: secrets("two") },
    },
  })
  await rotate(key)
  const vendor = await fakeVendor(t)
  vendor.answer = strict
  const product = await openProduct(t, { catalog, gateway: at(origin ?? vendor.origin) })
  return { product, vendor, rotate, at }
}

const chat = async ({ call }: Product, name = "one"): Promise<number> => {
  const response = await call("/chat/completions/", { model: name, messages: [{ role: "user", content: "hi" }] })
  await response.text()
  return response.status
}

const state = async ({ metrics }: Product): Promise<number> =>
  sample(await metrics(), `tollgate_upstream_breaker_state{vendor="one",secret="key"}`)

t.test("a secret that was rotated is used at once; one that was not stays at rest", async t => {
  const { product, vendor, rotate } = await open(t, "an-old-key")
  t.equal(await chat(product), 502)
  t.equal(await state(product), 2)
  t.same(await product.reload({}), [])
  t.equal(await chat(product), 502)
  t.equal(vendor.received.length, 1, "the vendor was not asked again")
  t.equal(await state(product), 2)
  await rotate(good)
  t.same(await product.reload({}), [])
  t.equal(await chat(product), 200)
  t.equal(await state(product), 0)
})

t.test("an origin that was corrected is called at once", async t => {
  const { product, vendor, at } = await open(t, good, await refusedOrigin())
  for (let calls = 0; calls < 5; calls += 1) t.equal(await chat(product), 502)
  t.equal(await state(product), 2)
  t.same(await product.reload({ gateway: at(vendor.origin) }), [])
  t.equal(await chat(product), 200)
  t.equal(await state(product), 0)
})

t.test("a call that was under way with the old key puts the new one to no rest", async t => {
  const { product, vendor, rotate } = await open(t, "an-old-key")
  const asked = Promise.withResolvers<() => void>()
  vendor.answer = (request, response: ServerResponse) => asked.resolve(() => strict(request, response))
  const old = chat(product)
  const refuse = await asked.promise
  vendor.answer = strict
  await rotate(good)
  t.same(await product.reload({}), [])
  refuse()
  t.equal(await old, 502)
  t.equal(await state(product), 0)
  t.equal(await chat(product), 200)
})

t.test(
  "no two credentials share a connection: neither those of one name, nor an old one and its successor",
  async t => {
    const { product, vendor, rotate } = await open(t, good)
    const connections = new Set<number | undefined>()
    vendor.answer = (_, response) => {
      connections.add(response.socket?.remotePort)
      json(response, 200, chatAnswer)
    }
    await rotate("key-of-one", "key-of-two")
    await product.reload({})
    t.equal(await chat(product, "one"), 200)
    t.equal(await chat(product, "two"), 200)
    t.equal(connections.size, 2)
    t.equal(await chat(product, "one"), 200)
    t.equal(connections.size, 2, "a credential uses its own again")
    await rotate("next-of-one", "key-of-two")
    await product.reload({})
    t.equal(await chat(product, "one"), 200)
    t.equal(connections.size, 3)
    t.equal(await chat(product, "two"), 200)
    t.equal(connections.size, 3, "and so does one that a reload left as it was")
  },
)

t.test(
  "reloads that are asked for while one waits are that one: a storm of them keeps nobody from stopping",
  async t => {
    const { product } = await open(t, good)
    const { gateway } = product
    const applied = async () => sample(await product.metrics(), 'tollgate_config_reloads_total{outcome="applied"}')
    const before = await applied()
    const running = gateway.reload()
    await turn() // it has begun
    const all = await Promise.all([running, ...Array.from({ length: 50 }, () => gateway.reload())])
    t.ok(all.every(reasons => reasons.length === 0))
    t.equal((await applied()) - before, 2)
    const stopped = gateway.stop()
    t.same(await gateway.reload(), ["the gateway is stopping"])
    await stopped
  },
)
