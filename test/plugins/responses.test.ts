/** Responses that the vendor stores: who may follow one up, with which secret, and from when on. */
import t from "tap"
import { bearer, events, json, keys, openProduct } from "../fixtures/product.ts"
import { until } from "../fixtures/until.ts"

const answered = {
  id: "resp_made",
  object: "response",
  status: "completed",
  output: [],
  usage: { input_tokens: 10, output_tokens: 20 },
}
const request = { model: "gpt", input: "hi" }

t.test("the member who made an answer may follow it up, and nobody else", async t => {
  const product = await openProduct(t, { gateway: { plugins: ["auth", "model", "pricing"] } })
  product.vendor.answer = (_, response) => json(response, 200, answered)
  t.equal((await product.call("/responses/", request)).status, 200)
  const follow = { ...request, previous_response_id: "resp_made" }
  t.equal((await product.call("/responses/", follow)).status, 200)
  t.equal((await product.call("/responses/", follow, bearer(keys.second))).status, 200, "any key of the member")
  t.equal(product.vendor.received.length, 3)
  t.not((await product.call("/responses/", follow, bearer(keys.poor))).status, 200)
  t.equal(product.vendor.received.length, 3)
})

t.test("a follow-up meets the secret that made the answer, whichever comes first otherwise", async t => {
  const product = await openProduct(t, {
    env: { ONE: "secret-1", TWO: "secret-2", VENDOR_KEY: "x" },
  })
  const { origin } = product.vendor
  const secrets = [
    { env: "ONE", name: "one" },
    { env: "TWO", name: "two" },
  ]
  const others = Object.fromEntries(["anthropic", "google"].map(name => [name, { adapter: name, origin, secrets }]))
  t.same(
    await product.reload({
      gateway: { sandbox: false, vendors: { ...others, openai: { adapter: "openai", origin, secrets } } },
    }),
    [],
  )
  let first: string | undefined
  product.vendor.answer = ({ headers }, response) => {
    first ??= headers.authorization
    const isFirst = product.vendor.received.length === 1
    json(response, isFirst ? 503 : 200, isFirst ? { error: { message: "busy" } } : answered)
  }
  t.equal((await product.call("/responses/", request)).status, 200)
  const [, maker] = product.vendor.received.map(one => one.headers.authorization)
  t.not(maker, first, "the secret that this member meets first did not make it")
  for (let turn = 0; turn < 4; turn++) {
    await (await product.call("/responses/", { ...request, previous_response_id: "resp_made" })).text()
  }
  t.same(new Set(product.vendor.received.slice(2).map(one => one.headers.authorization)), new Set([maker]))
  t.equal(product.vendor.received.length, 6)
})

t.test("a stream's client has the id only when it can be followed up; that it cannot is no loss", async t => {
  const product = await openProduct(t)
  const { records } = product.gateway.parts.store
  const put = records.put.bind(records)
  const lines = ["response.created", "response.completed"].map(type => JSON.stringify({ type, response: answered }))
  product.vendor.answer = (_, response) => events(response, ...lines)
  const stream = { ...request, stream: true }
  const recorded = Promise.withResolvers<void>()
  let asked = 0
  let told = false
  records.put = async (...words) => {
    asked += 1
    await recorded.promise
    t.notOk(told, "nothing was told before")
    return put(...words)
  }
  const answer = product.call("/responses/", stream).then(response => {
    told = true
    return response.text()
  })
  await until(() => asked === 1)
  for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve))
  recorded.resolve()
  const whole = lines.map(line => `data: ${line}\n\n`).join("")
  t.equal(await answer, whole)
  records.put = () => Promise.reject(new Error("the store is away"))
  t.equal(await (await product.call("/responses/", stream)).text(), whole)
})

t.test("nothing is remembered of an answer that is not to be stored", async t => {
  const product = await openProduct(t)
  product.vendor.answer = (_, response) => json(response, 200, answered)
  await (await product.call("/responses/", { ...request, store: false })).text()
  t.equal((await product.call("/responses/", { ...request, previous_response_id: "resp_made" })).status, 404)
})
