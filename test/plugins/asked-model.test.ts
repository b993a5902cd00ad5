/** Where a route of a plugin says that its model stands, and what is said when it does not stand there. */
import t from "tap"
import type { Plugin, Route } from "../../core/index.ts"
import { json, openProduct, productCatalog } from "../fixtures/product.ts"

/** A route without a schema of its own, that says which model was found. */
const naming = (path: string, method: Route["method"], model: Route["model"]): Plugin => ({
  name: `naming-${model}`,
  api: 1,
  kind: "endpoint",
  setup: host =>
    host.route({
      method,
      path,
      access: "key",
      dialect: "openai",
      model,
      charge: "none",
      limit: "common",
      handle: call => call.reply(200, { found: call.get("model").model.name }),
    }),
})

t.test("a model is read from the query, or from the body, and its absence is told by its place", async t => {
  const product = await openProduct(t, {
    plugins: [naming("/named/", "GET", "query"), naming("/told/", "POST", "body")],
  })
  const asked = async (path: string, body?: object) => {
    const answer = await product.call(path, body)
    return [answer.status, await answer.json()]
  }
  t.same(await asked("/named/?model=old-gpt"), [200, { found: "gpt" }])
  for (const query of ["", "?model="]) {
    t.match(await asked(`/named/${query}`), [
      400,
      { detail: "The query parameter 'model' is required", error: { param: "model" } },
    ])
  }
  t.same(await asked("/told/", { model: "old-gpt" }), [200, { found: "gpt" }])
  t.match(await asked("/told/", {}), [422, { detail: [{ loc: ["body", "model"], type: "missing" }] }])
  for (const model of [7, null, ["gpt"]])
    t.match(await asked("/told/", { model }), [422, { detail: [{ loc: ["body", "model"], type: "string_type" }] }])
})

t.test("a model of the route's family is relayed only by vendors of the family's own wire", async t => {
  const { claude } = productCatalog.models
  const targets = ["openai", "anthropic"].map(vendor => ({ vendor, model: "vendor-model" }))
  const product = await openProduct(t, { catalog: { models: { mixed: { ...claude, targets } } } })
  product.vendor.answer = (_, response) =>
    json(response, 200, { type: "message", content: [], usage: { input_tokens: 1, output_tokens: 1 } })
  const request = { model: "mixed", max_tokens: 5, messages: [{ role: "user", content: "hi" }] }
  t.equal((await product.call("/anthropic/v1/messages", request)).status, 200)
  t.same(
    product.vendor.received.map(({ path }) => path),
    ["/v1/messages"],
  )
})
