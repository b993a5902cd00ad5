/** How far a call goes on when vendors fail: every target of its model has its turn. */
import t from "tap"
import { testGateway } from "../../core/testing.ts"
import { chatAnswer, type FakeVendor, fakeVendor, json } from "../fixtures/product.ts"

const secretNames = ["first", "second", "third", "fourth", "fifth"]
const env = Object.fromEntries(secretNames.map(name => [name.toUpperCase(), `secret-${name}`]))
const secrets = secretNames.map(name => ({ env: name.toUpperCase() }))

/** The tries at each target, of which the last one answers: four in all, whoever has how many secrets. */
const rows: readonly (readonly [secrets: number, tries: readonly number[]])[] = [
  [5, [3, 1]],
  [1, [1, 1, 1]],
  [2, [2, 1, 1]],
  [5, [2, 1, 1]],
  [2, [1, 1, 1, 1]],
]

for (const [count, tries] of rows) {
  t.test(`the last of ${tries.length} targets is reached, with ${count} secrets each`, async t => {
    const vendors: FakeVendor[] = []
    for (const _ of tries) vendors.push(await fakeVendor(t))
    for (const vendor of vendors.slice(0, -1)) vendor.answer = (_, response) => json(response, 503, {})
    const named = vendors.map(({ origin }, at): [string, object] => [
      `vendor-${at}`,
      { adapter: "openai", origin, secrets: secrets.slice(0, count) },
    ])
    const targets = named.map(([vendor]) => ({ vendor, model: "m" }))
    const price = { input: "1 per 1M tokens", output: "1 per 1M tokens" }
    const gateway = await testGateway({
      env,
      random: () => 0,
      catalog: { models: { gpt: { type: "llm", family: "openai", targets, price } } },
      gateway: { sandbox: false, vendors: Object.fromEntries(named) },
    })
    t.teardown(() => gateway.close())
    const answer = await gateway.call("/chat/completions/", {
      model: "gpt",
      messages: [{ role: "user", content: "hi" }],
    })
    t.equal(answer.status, 200)
    t.match(await answer.json(), { choices: chatAnswer.choices })
    t.same(
      vendors.map(({ received }) => received.length),
      tries,
    )
  })
}
