/** Chat completions and embeddings towards vendors of the OpenAI wire. */
import t from "tap"
import type { ChatContext, ChatRequest, Model, Rules } from "../../core/index.ts"
import adapter from "../../plugins/vendors/openai/index.ts"
import { recorded } from "../fixtures/recorded.ts"

const { chat, embeddings } = adapter

const context = (given: { family?: string; rules?: Rules; options?: Record<string, unknown> } = {}): ChatContext => {
  const rules = given.rules ?? {}
  const target = { vendor: "v", model: "vendor-name" }
  const model: Model = {
    name: "catalog-name",
    type: "llm",
    family: given.family ?? "openai",
    targets: [target],
    created: 0,
    rules,
    messages: false,
    offered: true,
    capabilities: [],
    aliases: [],
  }
  const timeouts = { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1, totalStreamMs: 1 }
  const vendor = {
    name: "v",
    adapter: "openai",
    origin: "https://vendor.example",
    secrets: [],
    timeouts,
    onClientAbort: "drain" as const,
    sharedIds: false,
    options: given.options ?? {},
  }
  return { model, target, vendor, rules, id: "chatcmpl-1", created: 1, includeUsage: false }
}

const ask = (fields: object): ChatRequest => ({ model: "catalog-name", messages: [{ role: "user" }], ...fields })
const sent = (fields: object, given?: Parameters<typeof context>[0]) => {
  const { model, messages, ...rest } = chat.request(ask(fields), context(given)).body
  t.same([model, messages], ["vendor-name", [{ role: "user" }]])
  return rest
}

t.test("usage is always asked for in a stream, and the client's other stream options stay", async t => {
  t.same(sent({ stream: true }), { stream: true, stream_options: { include_usage: true } })
  t.same(sent({ stream: true, stream_options: { include_usage: false, include_obfuscation: false } }), {
    stream: true,
    stream_options: { include_usage: true, include_obfuscation: false },
  })
  t.same(sent({ stream: false, stream_options: { include_usage: true } }), { stream: false })
})

t.test("the limit gets the name that the model wants, and a client's own value under that name wins", async t => {
  const rules = { max_tokens_as: "max_completion_tokens" }
  t.same(sent({ max_tokens: 9 }, { rules }), { max_completion_tokens: 9 })
  t.same(sent({ max_tokens: 9, max_completion_tokens: 5 }, { rules }), { max_completion_tokens: 5 })
  t.same(sent({ max_completion_tokens: 5 }, { rules }), { max_completion_tokens: 5 })
  t.same(sent({ max_tokens: 9 }), { max_tokens: 9 })
})

t.test("a vendor may know the limit by one name only; a model's own rule wins", async t => {
  const options = { max_tokens_as: "max_tokens" }
  t.same(sent({ max_completion_tokens: 5 }, { options }), { max_tokens: 5 })
  t.same(
    sent({ max_completion_tokens: 5, max_tokens: 9 }, { options }),
    { max_tokens: 5 },
    "by which the hold was made",
  )
  t.same(sent({ max_tokens: 9 }, { options }), { max_tokens: 9 })
  t.same(sent({ max_completion_tokens: null }, { options }), {})
  t.same(sent({ max_completion_tokens: 5 }), { max_completion_tokens: 5 })
  const rules = { max_tokens_as: "max_completion_tokens" }
  t.same(sent({ max_tokens: 9 }, { options, rules }), { max_completion_tokens: 9 })
})

t.test("what a host refuses, and an answer can do without, is left out; nothing else is", async t => {
  const options = { leave_out: ["stream_options", "user"] }
  const fields = { stream: true, stream_options: { include_obfuscation: false }, user: "u", seed: 4 }
  t.same(sent(fields, { options }), { stream: true, seed: 4 })
  t.same(embeddings.request({ input: "a", user: "u" }, context({ options })).body, { input: "a", model: "vendor-name" })
  const calls = { tools: [], parallel_tool_calls: false }
  t.same(sent(calls, { options: { leave_out: ["parallel_tool_calls"] } }), { tools: [] }, "bug 20")
  t.same(sent(calls, { options }), calls)
})

t.test("instructions have the role that every vendor of the wire knows, unless the vendor has both", async t => {
  const messages = ["developer", "system", "user"].map(role => ({ role, content: "a" }))
  const roles = (options: Record<string, unknown>) => {
    const { body } = chat.request({ model: "catalog-name", messages }, context({ options }))
    return (body.messages as typeof messages).map(({ role }) => role)
  }
  t.same(roles({}), ["system", "system", "user"])
  t.same(roles({ developer: true }), ["developer", "system", "user"])
})

t.test("what the wire does not know passes unchanged: the vendor says whether it takes it", async t => {
  const fields = { thinking_budget: 5, thinking_level: "low", top_k: 3, seed: 4, absent: undefined }
  for (const family of ["openai", "another"]) {
    t.same(sent(fields, { family }), { thinking_budget: 5, thinking_level: "low", top_k: 3, seed: 4 })
  }
})

t.test("the client's request is not changed", async t => {
  const request = Object.freeze(ask({ max_tokens: 9, stream: true, stream_options: Object.freeze({}) }))
  chat.request(request, context({ rules: { max_tokens_as: "max_completion_tokens" } }))
  t.same(request, ask({ max_tokens: 9, stream: true, stream_options: {} }))
})

t.test("paths stand below /v1, or where the vendor's options say", async t => {
  t.equal(chat.request(ask({}), context()).path, "/v1/chat/completions")
  t.equal(chat.request(ask({}), context({ options: { api_path: "" } })).path, "/chat/completions")
  t.equal(embeddings.request({ input: "a" }, context({ options: { api_path: "/v2" } })).path, "/v2/embeddings")
})

t.test("an answer bears the catalog's name and is otherwise the vendor's", async t => {
  const [answer] = recorded("openai-chat", "openai-text.json")
  if (answer === undefined) return
  const whole = JSON.parse(answer.body.toString())
  t.same(chat.whole(answer.body, context(), undefined), { ...whole, model: "catalog-name" })
  const [vectors] = recorded("openai-embeddings", "openai-embedding.json")
  const found = embeddings.whole(vectors?.body ?? Buffer.alloc(0), {}, context())
  t.match(found, { model: "catalog-name", data: [{ index: 0 }, { index: 1 }] })
})

t.test("an answer that is no completion is the vendor's fault", async t => {
  for (const body of ["", "<html>", "[]", "{}", '{"choices":{}}']) {
    t.throws(() => chat.whole(Buffer.from(body), context(), undefined), { code: "upstream_unreadable" }, body)
    t.throws(() => embeddings.whole(Buffer.from(body), {}, context()), { code: "upstream_unreadable" }, body)
  }
})

t.test("an error inside a 200 is the vendor's fault by its own word; beside a part of an answer it passes", async t => {
  const whole = (answer: object) => chat.whole(Buffer.from(JSON.stringify(answer)), context(), undefined)
  const silent = [{ index: 0, message: { role: "assistant", content: "" }, finish_reason: "error" }]
  const error = { message: "the words", code: 429 }
  for (const choices of [undefined, [], silent]) {
    const expected = { code: "upstream_rate_limited", headers: { "retry-after": "1" } }
    t.throws(() => whole({ choices, error }), expected)
  }
  t.throws(() => whole({ error: { message: "the words", code: "content_filter" } }), {
    code: "content_policy_violation",
    message: "the words",
    reason: "content_filter",
  })
  t.throws(() => whole({ choices: null, base_resp: { status_code: 1008, status_msg: "no money" } }), {
    code: "upstream_account",
  })
  const part = [{ index: 0, message: { role: "assistant", content: "Hel" }, finish_reason: "error" }]
  t.match(whole({ choices: part, error }), { choices: part, error })
  t.match(whole({ choices: part, error: null, base_resp: { status_code: 0 } }), { choices: part })
})
