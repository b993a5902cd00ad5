/** Text calls from end to end: what the vendor gets, what the client gets, what it costs. */
import t from "tap"
import { bearer, chatAnswer, events, json, keys, openProduct, productCatalog } from "../fixtures/product.ts"

const messages = [{ role: "user", content: "hi" }]
const chunk = (part: object) =>
  JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "vendor-model-0101", ...part })
const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 }
const chunks = [
  chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "Hel" }, finish_reason: null }] }),
  chunk({ choices: [{ index: 0, delta: { content: "lo" }, finish_reason: "stop" }] }),
  chunk({ choices: [], usage }),
  "[DONE]",
]
const messagesEvent = (type: string, part: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, index: 0, ...part })}`
/** Of each wire one that never tells its usage. */
const silentStreams: Readonly<Record<string, readonly string[]>> = {
  gpt: chunks.slice(0, 2).map(one => JSON.stringify({ ...JSON.parse(one), usage: null })),
  claude: [
    messagesEvent("message_start", { message: { id: "m", type: "message", role: "assistant", content: [] } }),
    messagesEvent("content_block_start", { content_block: { type: "text", text: "" } }),
    messagesEvent("content_block_delta", { delta: { type: "text_delta", text: "Hello" } }),
    messagesEvent("content_block_stop", {}),
    messagesEvent("message_delta", { delta: { stop_reason: "end_turn" } }),
    messagesEvent("message_stop", {}),
  ],
  gemini: [
    JSON.stringify({ candidates: [{ content: { parts: [{ text: "Hello" }] }, finishReason: "STOP", index: 0 }] }),
  ],
}
const dataOf = (text: string): string[] =>
  text
    .split("\n\n")
    .filter(one => one.startsWith("data: "))
    .map(one => one.slice(6))

t.test("chat", async t => {
  await t.test("asks the vendor for its own model and answers with the catalog's, aliases included", async t => {
    const product = await openProduct(t)
    const answer = await product.call("/chat/completions/", { model: "old-gpt", messages, thinking_budget: 5 })
    t.match(await answer.json(), { ...chatAnswer, model: "gpt" })
    const [sent] = product.vendor.received
    t.equal(sent?.path, "/v1/chat/completions")
    t.same(sent?.json(), { model: "vendor-model", messages, thinking_budget: 5 })
    t.equal(sent?.headers.authorization, "Bearer secret-of-the-vendor")
  })

  await t.test("streams chunks under the catalog's name; usage is asked for, paid by, and not shown", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => events(response, ...chunks)
    const answer = await product.call("/chat/completions/", { model: "gpt", messages, stream: true })
    t.match(answer.headers.get("content-type"), /^text\/event-stream/)
    const data = dataOf(await answer.text())
    t.same(data, [...chunks.slice(0, 2).map(one => one.replace("vendor-model-0101", "gpt")), "[DONE]"])
    t.match(product.vendor.received[0]?.json(), { stream_options: { include_usage: true } })
    t.match(await product.balance(), { spent: 50_000, held: 0 })
  })

  await t.test("shows the usage chunk to who asked for it", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => events(response, ...chunks)
    const request = { model: "gpt", messages, stream: true, stream_options: { include_usage: true } }
    const data = dataOf(await (await product.call("/chat/completions/", request)).text())
    t.match(JSON.parse(data.at(-2)!), { choices: [], usage })
  })

  await t.test("tells them what they paid for where the vendor tells no usage", async t => {
    const product = await openProduct(t)
    for (const [model, silent] of Object.entries(silentStreams)) {
      const before = (await product.balance()).spent
      product.vendor.answer = (_, response) => events(response, ...silent)
      const request = { model, messages, stream: true, stream_options: { include_usage: true } }
      const data = dataOf(await (await product.call("/chat/completions/", request)).text())
      const told = data.slice(0, -1).map(one => JSON.parse(one))
      const [first, last] = [told[0], told.at(-1)]
      const { prompt_tokens, completion_tokens, total_tokens } = last.usage
      t.match(last, { id: first.id, created: first.created, object: first.object, model, choices: [] })
      t.ok(prompt_tokens > 0 && completion_tokens > 0, model)
      t.equal(total_tokens, prompt_tokens + completion_tokens)
      t.equal((await product.balance()).spent - before, 1_000 * prompt_tokens + 2_000 * completion_tokens)
      t.equal(data.at(-1), "[DONE]")
      t.equal(told.filter(one => one.choices.length === 0).length, 1, "once, and behind all others")
      t.equal(told.at(-2).choices[0].finish_reason, "stop")
    }
  })

  await t.test("names a file of the vendor's account where its operator shares them with everyone", async t => {
    const request = { model: "gpt", messages: [{ role: "user", content: [{ type: "file", file: { file_id: "f" } }] }] }
    const closed = await openProduct(t)
    t.equal((await closed.call("/chat/completions/", request)).status, 400)
    const { origin } = closed.vendor
    const openai = { origin, secrets: [{ env: "VENDOR_KEY" }], shared_ids: true }
    const catalog = { models: { gpt: productCatalog.models.gpt } }
    const shared = await openProduct(t, { catalog, gateway: { vendors: { openai } } })
    t.equal((await shared.call("/chat/completions/", request)).status, 200)
    t.equal(closed.vendor.received.length, 1)
  })

  await t.test("tells a stream that was cut, and charges what the vendor reported: nothing", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => events(response, chunks[0]!)
    const data = dataOf(
      await (await product.call("/chat/completions/", { model: "gpt", messages, stream: true })).text(),
    )
    t.match(JSON.parse(data.at(-1)!), { error: { message: String } })
    t.match(await product.balance(), { spent: 0, held: 0 })
  })

  await t.test("is an ordinary error when the first event is one, and costs nothing", async t => {
    const product = await openProduct(t)
    const error = { message: "quota", type: "insufficient_quota", code: "insufficient_quota" }
    product.vendor.answer = (_, response) => events(response, JSON.stringify({ error }))
    const answer = await product.call("/chat/completions/", { model: "gpt", messages, stream: true })
    t.equal(answer.status, 502)
    t.notMatch(await answer.text(), "quota")
    t.match(await product.balance(), { spent: 0, held: 0 })
  })

  await t.test("tries once more without effort when it is refused with tools", async t => {
    const product = await openProduct(t)
    const message = "Function tools with reasoning_effort are not supported for vendor-model."
    product.vendor.answer = (request, response) =>
      "reasoning_effort" in request.json()
        ? json(response, 400, {
            error: { message, type: "invalid_request_error", param: "reasoning_effort", code: null },
          })
        : json(response, 200, chatAnswer)
    const tools = [{ type: "function", function: { name: "f" } }]
    const answer = await product.call("/chat/completions/", { model: "gpt", messages, tools, reasoning_effort: "low" })
    t.equal(answer.status, 200)
    await answer.text()
    t.equal(product.vendor.received.length, 2)
    t.match(await product.balance(), { spent: 50_000, held: 0 })
  })

  await t.test("passes a vendor's 400 on in the gateway's shape", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) =>
      json(response, 400, {
        error: { message: "messages: too long", type: "invalid_request_error", param: "messages" },
      })
    const answer = await product.call("/chat/completions/", { model: "gpt", messages })
    t.equal(answer.status, 400)
    t.match(await answer.json(), { detail: "messages: too long", error: { param: "messages" } })
    t.match(await product.balance(), { spent: 0, held: 0 })
  })
})

t.test("the messages family", async t => {
  const answered = {
    id: "msg_1",
    type: "message",
    content: [{ type: "text", text: "Hi" }],
    usage: { input_tokens: 10, output_tokens: 20 },
  }

  await t.test("is relayed byte for byte, but for the model's name", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => json(response, 200, answered)
    const body = '{ "max_tokens":10,\n "model" : "claude", "messages":[{"role":"user","content":"h\\u0069"}] }'
    const answer = await product.call("/anthropic/v1/messages?beta=true", body, {
      headers: { "anthropic-beta": "a,b" },
    })
    t.equal(await answer.text(), JSON.stringify(answered))
    t.equal(answer.headers.get("x-credits-charged"), "0.05")
    const [sent] = product.vendor.received
    t.equal(sent?.text, body.replace('"claude"', '"vendor-model"'))
    t.equal(sent?.path, "/v1/messages?beta=true")
    t.match(sent?.headers, {
      "x-api-key": "secret-of-the-vendor",
      "anthropic-beta": "a,b",
      "anthropic-version": String,
    })
    t.equal(sent?.headers.authorization, undefined)
  })

  await t.test("a fast answer costs what the card says for the tier fast", async t => {
    const fast = { input: "10000 per 1M tokens", cache_read: "1000 per 1M tokens", output: "50000 per 1M tokens" }
    const price = {
      ...{ input: "5000 per 1M tokens", cache_read: "500 per 1M tokens", output: "25000 per 1M tokens" },
      when: [{ if: { service_tier: "fast" }, ...fast }],
    }
    const claude = { type: "llm", family: "anthropic", targets: [{ vendor: "anthropic", model: "c" }], price }
    const product = await openProduct(t, { catalog: { models: { claude } } })
    const charged = async (told: object, asked: object = {}) => {
      const usage = { input_tokens: 1_000, cache_read_input_tokens: 200, output_tokens: 100, ...told }
      product.vendor.answer = (_, response) => json(response, 200, { type: "message", content: [], usage })
      const answer = await product.call("/anthropic/v1/messages", { model: "claude", messages, ...asked })
      await answer.body?.cancel()
      return answer.headers.get("x-credits-charged")
    }
    // 1,000 x 10 + 200 x 1 + 100 x 50 thousandths of a credit; the usual card is half of it.
    t.equal(await charged({ speed: "fast", service_tier: "standard" }, { speed: "fast" }), "15.2")
    t.equal(await charged({ speed: "standard", service_tier: "standard" }, { speed: "fast" }), "7.6")
    t.equal(await charged({}, { speed: "fast" }), "15.2", "what was asked for counts when nothing is told")
  })

  await t.test("counts tokens at the vendor, free of charge", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => json(response, 200, { input_tokens: 7 })
    const answer = await product.call("/vendor-a/v1/messages/count_tokens/", { model: "claude", messages })
    t.same(await answer.json(), { input_tokens: 7 })
    t.equal(product.vendor.received[0]?.path, "/v1/messages/count_tokens")
    t.match(await product.balance(), { spent: 0, held: 0 })
  })

  await t.test("counts the tokens of another family's model itself", async t => {
    const product = await openProduct(t)
    const answer = await product.call("/vendor-a/v1/messages/count_tokens/", { model: "gpt", messages })
    t.same(await answer.json(), { input_tokens: 5 }, "a token of text and the frame of one message")
    t.match(await product.balance(), { spent: 0, held: 0 })
    t.same(product.vendor.received, [])
  })
})

t.test("the generate family", async t => {
  const contents = { contents: [{ parts: [{ text: "hi" }] }] }
  const answered = {
    candidates: [{ content: { parts: [{ text: "Hi" }] } }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 20 },
  }

  await t.test("is relayed under the vendor's name of the model", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => json(response, 200, answered)
    const answer = await product.call("/google/v1beta/models/gemini%3AgenerateContent", contents)
    t.same(await answer.json(), answered)
    t.equal(product.vendor.received[0]?.path, "/v1beta/models/vendor-model:generateContent")
    t.equal(product.vendor.received[0]?.text, JSON.stringify(contents))
    t.match(await product.balance(), { spent: 50_000, held: 0 })
  })

  await t.test("streams events, or one array, as the client asked", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (request, response) =>
      request.path.endsWith("alt=sse") ? events(response, JSON.stringify(answered)) : json(response, 200, [answered])
    const path = "/vendor-b/v1beta/models/gemini:streamGenerateContent/"
    t.same(dataOf(await (await product.call(`${path}?alt=sse`, contents)).text()), [JSON.stringify(answered)])
    t.same(await (await product.call(path, contents)).json(), [answered])
    t.match(await product.balance(), { spent: 100_000, held: 0 })
  })

  await t.test("is asked for JSON only: the client's accept stays here", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => json(response, 200, answered)
    const headers = { accept: "application/x-protobuf" }
    await (await product.call("/vendor-b/v1/models/gemini:generateContent?alt=json", contents, { headers })).text()
    const [sent] = product.vendor.received
    t.equal(sent?.path, "/v1/models/vendor-model:generateContent?alt=json")
    t.equal(sent?.headers.accept, undefined)
  })

  await t.test("counts tokens without hold or charge, even for who has nothing", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => json(response, 200, { totalTokens: 3 })
    const answer = await product.call("/google/v1beta/models/gemini:countTokens", contents, bearer(keys.poor))
    t.same(await answer.json(), { totalTokens: 3 })
  })
})

t.test("metrics tell requests, errors, tokens and credits", async t => {
  const product = await openProduct(t)
  await (await product.call("/chat/completions/", { model: "gpt", messages })).text()
  await (await product.call("/chat/completions/", { model: "nobody", messages })).text()
  const text = await product.metrics()
  for (const line of [
    'tollgate_http_requests_total{route="/chat/completions/",method="POST",status="200"} 1',
    'tollgate_http_requests_total{route="/chat/completions/",method="POST",status="404"} 1',
    'tollgate_errors_total{route="/chat/completions/",error_type="client_invalid"} 1',
    'tollgate_upstream_requests_total{vendor="openai",model="gpt",outcome="delivered"} 1',
    'tollgate_tokens_total{vendor="openai",model="gpt",type="output"} 20',
    'tollgate_credits_total{kind="settled",model="gpt"} 0.05',
    "tollgate_requests_in_flight 0",
  ]) {
    t.ok(text.includes(line), line)
  }
  t.notMatch(text, "nobody", "a name that a client made up is never a label")
})

t.test("the log has one line per call, with the cause of what failed", async t => {
  const product = await openProduct(t)
  const headers = { "x-request-id": "x".repeat(500) }
  await (await product.call("/chat/completions/", { model: "gpt", messages }, { headers })).text()
  await (await product.call("/chat/completions/", { model: "nobody", messages })).text()
  const lines = product.lines.filter(line => line.msg === "call")
  t.equal(lines.length, 2)
  t.match(lines[0], {
    status: 200,
    outcome: "delivered",
    member: "alice",
    model: "gpt",
    vendor: "openai",
    micros: 50_000,
  })
  t.equal(String(lines[0]?.client_request_id).length, 128)
  t.match(lines[1], { status: 404, outcome: "rejected", code: "model_not_found" })
})

t.test(
  "the log's line tells how an answer came: its bytes, its first one, each try; our faults are louder",
  async t => {
    const product = await openProduct(t, { gateway: { plugins: ["access-log", "auth", "model", "pricing"] } })
    const ask = async (more: object) =>
      (await product.call("/chat/completions/", { model: "gpt", messages, ...more })).text()
    let failed = false
    product.vendor.answer = (_, response) => {
      if (failed) return events(response, ...chunks)
      failed = true
      json(response, 503, { error: { message: "busy" } })
    }
    const told = await ask({ stream: true })
    await ask({ model: "nobody" })
    await ask({ model: "unpriced" })
    product.vendor.answer = (_, response) => json(response, 500, { error: { message: "broken" } })
    await ask({})
    const [streamed, ...refused] = product.lines.filter(({ msg }) => msg === "call")
    t.match(streamed, { level: "info", streamed: true, bytes: Buffer.byteLength(told), first_byte_ms: Number })
    t.match(streamed?.attempts, [{ status: 503 }, { status: 200 }])
    t.same(
      refused.map(({ level, status }) => [level, status]),
      [
        ["info", 404],
        ["warn", 500],
        ["warn", 500],
      ],
    )
  },
)
