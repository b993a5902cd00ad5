/** The exact texts and statuses of the specification's tables, in the dialect of their routes; none costs anything. */
import fc from "fast-check"
import t from "tap"
import { bearer, keys, openProduct } from "../fixtures/product.ts"

const messages = [{ role: "user", content: "hi" }]
const chat = (model: unknown, more: object = {}) => ({ model, messages, ...more })
const claude = (model: unknown, more: object = {}) => ({ model, messages, max_tokens: 10, ...more })
const contents = { contents: [{ parts: [{ text: "hi" }] }] }

type Row = readonly [what: string, path: string, body: unknown, status: number, detail: unknown, init?: RequestInit]

const rows: readonly Row[] = [
  [
    "an unknown model on chat",
    "/chat/completions/",
    chat("nobody"),
    404,
    "invalid_request_error - Model 'nobody' not found",
  ],
  [
    "an image model on chat",
    "/chat/completions/",
    chat("picture"),
    404,
    "invalid_request_error - Model 'picture' not found",
  ],
  [
    "a disabled model on chat",
    "/chat/completions/",
    chat("forbidden"),
    404,
    "invalid_request_error - Model 'forbidden' not found",
  ],
  [
    "a disabled image model on chat",
    "/chat/completions/",
    chat("forbidden-picture"),
    404,
    "invalid_request_error - Model 'forbidden-picture' not found",
  ],
  ["a model that only Responses takes", "/chat/completions/", chat("codex"), 400, "Model 'codex' not found"],
  [
    "an app-only model",
    "/chat/completions/",
    chat("hidden"),
    403,
    "Model 'hidden' is not available through the Gateway API.",
  ],
  [
    "a model without a price",
    "/chat/completions/",
    chat("unpriced"),
    500,
    "No price is configured for model 'unpriced'",
  ],
  [
    "a name from the prototype",
    "/chat/completions/",
    chat("__proto__"),
    404,
    "invalid_request_error - Model '__proto__' not found",
  ],
  [
    "a name of signs that a replacement would read",
    "/chat/completions/",
    chat("$&$'"),
    404,
    "invalid_request_error - Model '$&$'' not found",
  ],
  ["temperature over 2", "/chat/completions/", chat("gpt", { temperature: 3 }), 400, /temperature/],
  [
    "temperature of a model that takes only 1",
    "/chat/completions/",
    chat("cool", { temperature: 0.5 }),
    400,
    /temperature/,
  ],
  ["five stop sequences", "/chat/completions/", chat("gpt", { stop: [..."abcde"] }), 400, /stop/],
  [
    "an answer for later",
    "/chat/completions/",
    chat("gpt", { deferred: true }),
    400,
    "deferred: true is not supported: its usage cannot be seen",
  ],
  [
    "a search before the answer",
    "/chat/completions/",
    chat("gpt", { search_parameters: { mode: "on" } }),
    400,
    "search_parameters is not supported: its usage cannot be seen",
  ],
  [
    "a tool that the vendor runs",
    "/chat/completions/",
    chat("gpt", { tools: [{ type: "web_search", web_search: { enable: true } }] }),
    400,
    "The tool 'web_search' is not supported: its usage cannot be seen",
  ],
  [
    "an uploaded file on chat",
    "/chat/completions/",
    { model: "gpt", messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file_1" } }] }] },
    400,
    /^file_id names something stored /,
  ],
  [
    "an answer that no meter reads",
    "/vendor-b/v1beta/models/gemini:generateContent?alt=proto",
    contents,
    400,
    "The query parameter 'alt' must be sse or json",
  ],
  ["a second alt", "/vendor-b/v1/models/gemini:generateContent?alt=json&alt=proto", contents, 400, /'alt'/],
  ["a repeated model", "/chat/completions/", '{"model":"gpt","mod\\u0065l":"claude","messages":[]}', 400, /model/],
  ["another family on messages", "/vendor-a/v1/messages/", claude("gpt"), 400, "Model 'gpt' is not an Anthropic model"],
  ["an unknown model on messages", "/anthropic/v1/messages", claude("nobody"), 404, "Model 'nobody' not found"],
  ["a disabled model on messages", "/vendor-a/v1/messages/", claude("forbidden"), 404, "Model 'forbidden' not found"],
  [
    "an uploaded file on messages",
    "/vendor-a/v1/messages/",
    claude("claude", { container: "c_1" }),
    400,
    /^container /,
  ],
  [
    "another family on Responses",
    "/responses/",
    { model: "claude", input: "hi" },
    400,
    "Model 'claude' is not an OpenAI Responses model",
  ],
  ["background Responses", "/responses/", { model: "gpt", input: "hi", background: true }, 400, /background/],
  [
    "an unknown earlier response",
    "/responses/",
    { model: "gpt", input: "hi", previous_response_id: "resp_1" },
    404,
    /resp_1/,
  ],
  [
    "an unknown conversation",
    "/responses/",
    { model: "gpt", input: "hi", conversation: { id: "conv_1" } },
    404,
    /conv_1/,
  ],
  ["a stored prompt", "/responses/", { model: "gpt", prompt: { id: "pmpt_1" } }, 400, /^prompt.id /],
  [
    "another family on generate",
    "/vendor-b/v1beta/models/gpt:generateContent/",
    contents,
    400,
    "Model 'gpt' is not a Google model",
  ],
  ["an unknown method on generate", "/google/v1beta/models/gemini:embedContent", contents, 404, "Not found"],
  [
    "a cache on generate",
    "/google/v1beta/models/gemini:generateContent",
    { ...contents, cachedContent: "c/1" },
    400,
    /^cachedContent /,
  ],
  ["a text model for embeddings", "/embeddings/", { model: "gpt", input: "hi" }, 404, "Model 'gpt' not found"],
  ["no credits", "/chat/completions/", chat("gpt"), 402, "Credit balance exhausted", bearer(keys.poor)],
  ["an unknown key", "/chat/completions/", chat("gpt"), 401, "Invalid API key", bearer("tg_nobody")],
  [
    "two different keys",
    "/credits/",
    undefined,
    401,
    "Invalid API key",
    { headers: { authorization: "Bearer a", "x-api-key": "b" } },
  ],
  [
    "a malformed header",
    "/credits/",
    undefined,
    401,
    "Bearer token is not supplied",
    { headers: { authorization: "Basic x" } },
  ],
  [
    "an organisation whose gateway is off",
    "/credits/",
    undefined,
    403,
    "The Gateway API is disabled for your organisation.",
    bearer(keys.bob),
  ],
  ["an unknown model's detail", "/models/nobody/", undefined, 404, "Model 'nobody' not found"],
  ["an app-only model's detail", "/models/hidden/", undefined, 404, "Model 'hidden' not found"],
  ["a disabled model's detail", "/models/forbidden-picture/", undefined, 404, "Model 'forbidden-picture' not found"],
  ["a page token that is none", "/google/v1beta/models?pageToken=x", undefined, 400, /page token/],
]

t.test("refusals", async t => {
  const product = await openProduct(t)
  for (const [what, path, body, status, detail, init] of rows) {
    await t.test(`${what}: ${status}`, async t => {
      const answer = await product.call(path, body, init)
      const error = (await answer.json()) as { detail: unknown }
      t.equal(answer.status, status)
      if (typeof detail === "string") t.equal(error.detail, detail)
      else t.match(error.detail, detail)
      t.match(answer.headers.get("x-request-id"), /^[0-9a-f-]{36}$/)
    })
  }
  await t.test("nothing was charged or held, and no vendor heard of it", async t => {
    t.match(await product.balance(), { available: 1_000_000_000, held: 0, spent: 0 })
    t.same(product.vendor.received, [])
  })
})

const boolStream = { loc: ["body", "stream"], type: "bool_type", msg: "Input should be a valid boolean", input: "true" }

const invalid: readonly [what: string, path: string, body: unknown, item: object][] = [
  ["no model", "/chat/completions/", { messages }, { loc: ["body", "model"], type: "missing" }],
  ["a model that is no text", "/chat/completions/", chat(7), { loc: ["body", "model"], type: "string_type" }],
  ["no messages", "/chat/completions/", { model: "gpt" }, { loc: ["body", "messages"], type: "missing" }],
  [
    "an unknown role",
    "/chat/completions/",
    { model: "gpt", messages: [{ role: "king", content: "" }] },
    { loc: ["body", "messages", 0, "role"], type: "literal_error" },
  ],
  ["a stream that is a word", "/chat/completions/", chat("gpt", { stream: "true" }), boolStream],
  ["a stream that is a word", "/responses/", { model: "gpt", input: "hi", stream: "true" }, boolStream],
  ["broken JSON", "/chat/completions/", '{"model":', { type: "json_invalid" }],
  [
    "a limit that is no number",
    "/vendor-a/v1/messages/",
    claude("claude", { max_tokens: "ten" }),
    { loc: ["body", "max_tokens"], type: "int_type" },
  ],
  ["nothing to embed", "/embeddings/", { model: "vectors" }, { loc: ["body", "input"], type: "missing" }],
  ["an unknown type", "/models/?type=llm,toaster", undefined, { loc: ["query", "type"], type: "literal_error" }],
  ["an unknown group", "/usage/?by=colour", undefined, { loc: ["query", "by"], type: "literal_error" }],
  ["an unknown scope", "/usage/?scope=world", undefined, { loc: ["query", "scope"], type: "literal_error" }],
  ["a day that is none", "/usage/?from=2026-02-30", undefined, { loc: ["query", "from"], type: "date_parsing" }],
  [
    "a page whose size is no number",
    "/google/v1beta/models?pageSize=x",
    undefined,
    { loc: ["query", "pageSize"], type: "int_parsing" },
  ],
  [
    "a page behind a model that is not there",
    "/anthropic/v1/models?after_id=nobody",
    undefined,
    { loc: ["query", "after_id"], type: "value_error" },
  ],
  [
    "an earlier response that is no id",
    "/responses/",
    { model: "gpt", input: "hi", previous_response_id: 7 },
    { loc: ["body", "previous_response_id"], type: "string_type" },
  ],
  ["a page of nothing", "/anthropic/v1/models?limit=0", undefined, { loc: ["query", "limit"], type: "int_parsing" }],
]

t.test("validation", async t => {
  const product = await openProduct(t)
  for (const [what, path, body, item] of invalid) {
    await t.test(`${what}: 422`, async t => {
      const answer = await product.call(path, body)
      const { detail } = (await answer.json()) as { detail: unknown[] }
      t.equal(answer.status, 422)
      t.match(detail, [item])
    })
  }
  t.match(await product.balance(), { available: 1_000_000_000, held: 0, spent: 0 })
})

t.test("each route refuses in its SDK's own shape", async t => {
  const product = await openProduct(t)
  const bodyOf = async (path: string, body: unknown) => (await product.call(path, body)).json()
  t.match(await bodyOf("/chat/completions/", chat("nobody")), {
    error: {
      message: "Model 'nobody' not found",
      type: "invalid_request_error",
      code: "model_not_found",
      param: "model",
    },
  })
  t.match(await bodyOf("/vendor-a/v1/messages/", claude("gpt")), {
    type: "error",
    error: { type: "invalid_request_error", message: "Model 'gpt' is not an Anthropic model" },
  })
  t.match(await bodyOf("/vendor-b/v1beta/models/gpt:generateContent", contents), {
    error: { code: 400, message: "Model 'gpt' is not a Google model", status: "INVALID_ARGUMENT" },
  })
})

t.test("the edge: a client without a name gets text", async t => {
  const product = await openProduct(t)
  const answer = await product.call("/models/", undefined, { headers: { "user-agent": "" } })
  t.equal(answer.status, 403)
  t.match(answer.headers.get("content-type"), /^text\/plain/)
  t.equal(await answer.text(), "error code: 1010")
})

t.test("maintenance: 503, told when to come back, before the key is looked at", async t => {
  const plugins = ["edge", { maintenance: { on: true, retry_after: "2m" } }, "auth", "model", "pricing"]
  const product = await openProduct(t, { gateway: { plugins } })
  const answer = await product.call("/models/", undefined, bearer("tg_nobody"))
  t.equal(answer.status, 503)
  t.equal(answer.headers.get("retry-after"), "120")
  t.match(await answer.json(), { detail: "Service is temporarily stopped for maintenance" })
  t.notOk(
    product.lines.some(({ level }) => level === "error"),
    "what the operator switched is no failure of each call",
  )
})

t.test("body size: declared or counted, the boundary passes", async t => {
  const plugins = ["edge", { "body-size": { max: "1MB" } }, "auth", "rate-limit", "model", "pricing"]
  const product = await openProduct(t, { gateway: { plugins } })
  const sized = (bytes: number): string => {
    const frame = JSON.stringify(chat("gpt", { user: "" }))
    return JSON.stringify(chat("gpt", { user: "x".repeat(bytes - frame.length) }))
  }
  const limit = 1024 * 1024
  const text = { detail: "Request body too large. Maximum size is 1MB." }
  t.equal((await product.call("/chat/completions/", sized(limit))).status, 200)
  const declared = await product.call("/chat/completions/", sized(limit + 1))
  t.equal(declared.status, 413)
  t.match(await declared.json(), text)
  const body = new Blob([sized(limit + 1)]).stream()
  const counted = await fetch(`${product.url}/chat/completions/`, {
    method: "POST",
    body,
    duplex: "half",
    ...bearer(keys.alice),
  })
  t.equal(counted.status, 413)
  t.match(await counted.json(), text)
})

t.test("random names never reach a vendor", async t => {
  const product = await openProduct(t, { gateway: { plugins: ["auth", "model", "pricing"] } })
  const known = new Set(["gpt", "gpt-shared", "cool", "old-gpt"])
  const name = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.constantFrom("constructor", "../gpt", "gpt/", "GPT", "gpt "),
  )
  await fc.assert(
    fc.asyncProperty(name, async asked => {
      fc.pre(!known.has(asked))
      const answer = await product.call("/chat/completions/", chat(asked))
      await answer.text()
      return answer.status >= 400 && answer.status < 500 && product.vendor.received.length === 0
    }),
    { numRuns: 60 },
  )
})
