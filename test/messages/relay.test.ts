/** The relay of the family, and its counting: what a request may not name, and who is asked. */
import t, { type Test } from "tap"
import { json, openProduct, productCatalog } from "../fixtures/product.ts"

const own = (name: string, price: object, more: object = {}) => ({
  type: "llm",
  family: "anthropic",
  targets: [{ vendor: "anthropic", model: name }],
  max_output: 1000,
  price,
  ...more,
})

const usual = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }

const open = async (t: Test) => {
  const product = await openProduct(t, {
    catalog: {
      models: {
        ...productCatalog.models,
        main: own("main", usual),
        cheaper: own("cheaper", { ...usual, cache_read: "100 per 1M tokens" }),
        dearer: own("dearer", { ...usual, output: "2001 per 1M tokens" }),
        "dearer-at-length": own("dearer-at-length", {
          ...usual,
          when: [{ if: { prompt: "> 200000" }, input: "1001 per 1M tokens" }],
        }),
        "dearer-writes": own("dearer-writes", { ...usual, cache_write_5m: "1250 per 1M tokens" }),
        priceless: own("priceless", usual, { price: undefined }),
        hidden: own("hidden", usual, { offered: false }),
        forbidden: own("forbidden", usual),
        renamed: own("vendor-name", usual),
      },
    },
  })
  product.vendor.answer = (_, response) =>
    json(response, 200, { type: "message", content: [], usage: { input_tokens: 1, output_tokens: 1 } })
  const ask = async (fields: object, path = "/anthropic/v1/messages") => {
    const request = { model: "main", max_tokens: 10, messages: [{ role: "user", content: "hi" }], ...fields }
    const answer = await product.call(path, request)
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  return { ...product, ask }
}

t.test("a thread that another member may own is not found, so that clients send the whole conversation", async t => {
  const { ask, vendor } = await open(t)
  const { status, body } = await ask({ thread: { type: "continue", previous_message_id: "msg_1" } })
  const message = "thread names something stored at the vendor, which the gateway does not offer"
  t.equal(status, 400)
  t.match(body, {
    detail: message,
    type: "error",
    error: { type: "invalid_request_error", message, details: { error_code: "thread_not_found" } },
  })
  t.same(vendor.received, [])
  t.equal((await ask({ thread: { type: "create" } })).status, 200)
})

t.test("a message of another member is not compared with", async t => {
  const { ask, vendor } = await open(t)
  const { status, body } = await ask({ diagnostics: { previous_message_id: "msg_1" } })
  t.equal(status, 400)
  t.notOk((body.error as Record<string, unknown>).details)
  t.same(vendor.received, [])
  t.equal((await ask({ diagnostics: { previous_message_id: null } })).status, 200)
})

t.test("a second field of the same name is not passed on unseen", async t => {
  const product = await open(t)
  for (const field of ["thread", "diagnostics", "container", "fallbacks", "tools"]) {
    const body = `{"model":"main","max_tokens":10,"messages":[],"${field}":{"previous_message_id":"a"},"${field}":null}`
    const headers = { "content-type": "application/json" }
    const answer = await product.call("/anthropic/v1/messages", undefined, { method: "POST", body, headers })
    t.equal(answer.status, 400, field)
    await answer.body?.cancel()
  }
  t.same(product.vendor.received, [])
})

const advisor = (model: string) => ({ tools: [{ type: "advisor_20260301", name: "advisor", model }] })
const fallback = (model: string) => ({ fallbacks: [{ model: "main" }, { model }] })

const added = (model: string) => {
  const [tool] = advisor(model).tools
  return { messages: [{ role: "system", content: [{ type: "tool_addition", tool }] }] }
}

for (const [what, naming] of [
  ["a fallback", fallback],
  ["an advisor", advisor],
  ["an advisor that joins later", added],
] as const) {
  t.test(`${what} is a model that the organisation may use, and is not dearer`, async t => {
    const { ask, vendor } = await open(t)
    for (const name of ["nobody", "hidden", "forbidden", "renamed", "gpt"]) {
      const { status, body } = await ask(naming(name))
      t.equal(status, 404, name)
      t.match(body, { detail: `Model '${name}' not found`, error: { type: "not_found_error" } })
    }
    for (const name of ["dearer", "dearer-at-length", "dearer-writes", "priceless"]) {
      const { status, body } = await ask(naming(name))
      t.equal(status, 400, name)
      t.match(body, { detail: new RegExp(`^Model '${name}' may cost more`) })
    }
    t.same(vendor.received, [])
    for (const name of ["main", "cheaper"]) t.equal((await ask(naming(name))).status, 200, name)
    t.equal((await ask(naming("forbidden"), "/anthropic/v1/messages/count_tokens")).status, 404)
  })
}

t.test("fallbacks that the vendor chooses have no price", async t => {
  const { ask } = await open(t)
  const { status, body } = await ask({ fallbacks: "default" })
  t.equal(status, 400)
  t.match(body, { detail: /^'fallbacks' must name its models/ })
  t.equal((await ask({ fallbacks: null })).status, 200)
})

t.test("a model inside of a tool's own schema or a conversation names nothing", async t => {
  const { ask } = await open(t)
  const tools = [{ name: "car", input_schema: { type: "object", properties: { model: { type: "string" } } } }]
  const content = [{ type: "tool_use", id: "t", name: "car", input: { model: "nobody" } }]
  const earlier = { type: "fallback", from: { model: "nobody" }, to: { model: "nobody" } }
  const messages = [{ role: "assistant", content: [earlier, ...content] }]
  t.equal((await ask({ tools, messages })).status, 200)
})

const countPath = "/anthropic/v1/messages/count_tokens"

t.test("a family model is counted where it is answered, whoever else may serve it", async t => {
  const product = await openProduct(t, {
    catalog: {
      models: {
        both: own("both", usual, {
          targets: [
            { vendor: "openai", model: "theirs", weight: 1_000_000 },
            { vendor: "anthropic", model: "both", weight: 1 },
          ],
        }),
      },
    },
  })
  product.vendor.answer = (_, response) => json(response, 200, { input_tokens: 77 })
  const messages = [{ role: "user", content: "hi" }]
  t.same(await (await product.call(countPath, { model: "both", messages })).json(), { input_tokens: 77 })
  t.match(product.vendor.received, [{ path: "/v1/messages/count_tokens" }])
})

t.test("a model that only another route takes is not found", async t => {
  const { ask } = await open(t)
  const { status, body } = await ask({ model: "codex" }, countPath)
  t.equal(status, 404)
  t.match(body, { detail: "Model 'codex' not found", error: { type: "not_found_error" } })
})

t.test("what is counted here has messages", async t => {
  const { ask } = await open(t)
  for (const messages of [undefined, null, "hi", {}]) {
    const { status, body } = await ask({ model: "gpt", messages }, countPath)
    t.equal(status, 422, JSON.stringify(messages))
    t.match(body, { detail: [{ loc: ["body", "messages"], type: messages === undefined ? "missing" : "list_type" }] })
  }
  t.equal((await ask({ model: "gpt" }, countPath)).status, 200)
})
