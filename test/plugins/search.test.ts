/** The search family: bytes untouched both ways, billed by the cost that the vendor tells. */

import t, { type Test } from "tap"
import { sha256 } from "../fixtures/client.ts"
import { openEndpoints, openSandboxed, told, vendorKey } from "../fixtures/endpoints.ts"
import { json } from "../fixtures/product.ts"

const price = { vendor_cost: "1000 per dollar", requests: "10 per requests" }
const models = Object.fromEntries(
  ["search", "contents", "answer"].map(name => [
    `exa-${name}`,
    { type: "search", targets: [{ vendor: "exa", model: name }], price },
  ]),
)
const open = (t: Test) => openEndpoints(t, models)

t.test("requests and answers pass byte for byte on every mount, each with its model", async t => {
  const endpoints = await open(t)
  const sent = `{ "query" :\t"caf\\u00e9", "numResults": 1.0, "model": "exa", "unknown": {"b":1,"a":[]}\n}`
  const back = `{"requestId" : "r",  "results":[ ], "answer":"caf\\u00e9", "costDollars": {"total": 0.0070, "search":{"neural":0.007}}}\n`
  endpoints.vendor.answer = (_, response) => {
    response
      .writeHead(200, { "content-type": "application/json; charset=utf-8", "set-cookie": "a=b", "x-team": "us" })
      .end(back)
  }
  for (const prefix of ["vendor-c", "exa"]) {
    for (const name of ["search", "contents", "answer"]) {
      const response = await endpoints.call(`/${prefix}/${name}`, sent, { headers: { "x-api-key": endpoints.key } })
      t.equal(sha256(new Uint8Array(await response.arrayBuffer())), sha256(back), name)
      t.equal(response.headers.get("x-credits-charged"), "7")
      t.equal(response.headers.get("content-type"), "application/json; charset=utf-8")
      t.notOk(response.headers.has("set-cookie") || response.headers.has("x-team"))
      const { path, headers, text } = endpoints.vendor.received.at(-1)!
      t.same([path, headers["x-api-key"], headers.authorization], [`/${name}`, vendorKey, undefined])
      t.equal(sha256(text), sha256(sent))
    }
  }
  t.equal(await endpoints.spent(), 6 * 7_000_000)
})

t.test("a stream passes byte for byte and is billed by the cost in its last chunk", async t => {
  const endpoints = await open(t)
  const stream =
    'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n: keep\n\ndata: {"choices":[{"delta":{"content":"Caf\u00e9 "}}],"citations":"null"}\r\n\r\n' +
    'data:{"citations":[{"id":"1"}]}\n\ndata: {"costDollars":{"total":0.005}}\n\n'
  const bytes = Buffer.from(stream)
  endpoints.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const byte of bytes) response.write(Buffer.of(byte))
    response.end()
  }
  const response = await endpoints.call("/vendor-c/answer/", { query: "q", stream: true })
  t.equal(response.headers.get("content-type"), "text/event-stream")
  t.equal(sha256(new Uint8Array(await response.arrayBuffer())), sha256(bytes))
  t.equal(await endpoints.spent(), 5_000_000)
})

t.test(
  "an answer that tells no cost, or an impossible one, costs a request; one that cost nothing costs nothing",
  async t => {
    const endpoints = await open(t)
    const charge = async (costDollars: unknown) => {
      endpoints.vendor.answer = (_, response) => json(response, 200, { results: [], costDollars })
      return (await told(await endpoints.call("/exa/search/", { query: "q" }))).charged
    }
    t.equal(await charge(undefined), "10")
    for (const total of [-1, 101, "0.1", true, {}]) t.equal(await charge({ total }), "10", JSON.stringify(total))
    t.equal(await charge({ total: 0 }), "0")
    t.equal(await charge({ total: 0.0000001 }), "0.0001")
    t.equal(await endpoints.spent(), 6 * 10_000_000 + 100)
  },
)

t.test("a stream that tells no cost costs a request; one that dies before its cost costs nothing", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end('data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n')
  }
  await (await endpoints.call("/exa/answer/", { query: "q", stream: true })).text()
  t.equal(await endpoints.spent(), 10_000_000)
  endpoints.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write('data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', () => response.destroy())
  }
  t.match(await (await endpoints.call("/exa/answer/", { query: "q", stream: true })).text(), /"tag":"INTERNAL_ERROR"/)
  t.equal(await endpoints.spent(), 10_000_000)
})

t.test("an answer that is free because the vendor told no cost, and no request is priced, raises an alarm", async t => {
  const endpoints = await openEndpoints(t, {
    "exa-search": { ...models["exa-search"]!, price: { vendor_cost: "1000 per dollar" } },
  })
  const missing = async (costDollars: unknown) => {
    endpoints.vendor.answer = (_, response) => json(response, 200, { results: [], costDollars })
    t.match(await told(await endpoints.call("/exa/search/", { query: "q" })), { status: 200, charged: "0" })
    return /^tollgate_usage_missing_total\{vendor="exa",model="exa-search"\} (\d+)$/m.exec(
      await endpoints.metrics(),
    )?.[1]
  }
  t.equal(await missing({ total: 0 }), "0")
  t.equal(await missing(undefined), "1")
  t.equal(await missing({ total: 1e9 }), "2")
})

t.test("an empty wallet is refused where only the vendor will say what the call cost", async t => {
  const endpoints = await openEndpoints(t, {
    "exa-search": { ...models["exa-search"]!, price: { vendor_cost: "1000 per dollar" } },
  })
  endpoints.vendor.answer = (_, response) => json(response, 200, { results: [], costDollars: { total: 1 } })
  const search = async () => told(await endpoints.call("/exa/search/", { query: "q" }))
  t.match(await search(), { status: 200, charged: "1000" })
  t.match(await search(), { status: 402, charged: null })
  t.equal(endpoints.vendor.received.length, 1)
  t.equal(await endpoints.spent(), 1_000_000_000)
})

t.test("the client's faults pass as they are; ours become 502 and tell nothing; neither costs anything", async t => {
  const ask = async (status: number, body: object) => {
    const endpoints = await open(t)
    endpoints.vendor.answer = (_, response) => json(response, status, body)
    const response = await endpoints.call("/exa/search/", { query: "q" })
    t.equal(await endpoints.spent(), 0)
    return { status: response.status, text: await response.text() }
  }
  for (const status of [400, 404, 409, 422]) {
    const body = { requestId: "r", error: "Invalid query", tag: "INVALID_REQUEST" }
    t.same(await ask(status, body), { status, text: JSON.stringify(body) })
  }
  for (const [status, tag] of [
    [401, "INVALID_API_KEY"],
    [402, "NO_MORE_CREDITS"],
    [403, "FEATURE_DISABLED"],
    [400, "API_KEY_BUDGET_EXCEEDED"],
  ] as const) {
    const { status: given, text } = await ask(status, { requestId: "r", error: "Our team's budget is gone", tag })
    t.equal(given, 502, tag)
    t.notMatch(text, /budget/)
    t.match(JSON.parse(text), { detail: String, error: String, requestId: String, tag: "INTERNAL_ERROR" })
  }
  t.equal((await ask(500, { error: "oops" })).status, 500)
  t.equal((await ask(429, { error: "Too many" })).status, 429)
})

t.test("a fault as the first event of a stream is an ordinary error", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end('data: {"error":"No more credits","tag":"NO_MORE_CREDITS"}\n\n')
  }
  t.equal((await endpoints.call("/exa/answer/", { query: "q", stream: true })).status, 502)
  t.equal(await endpoints.spent(), 0)
})

t.test("the gateway's own errors have the shape of this family", async t => {
  const endpoints = await open(t)
  const bad = await endpoints.call("/exa/search/", { query: "q" }, { headers: { "x-api-key": "tg_unknown" } })
  t.match(await told(bad), { status: 401, detail: "Invalid API key", error: "Invalid API key", tag: "INVALID_API_KEY" })
  t.match(await told(await endpoints.call("/exa/search/", { stream: 1 })), { status: 422, tag: "INVALID_REQUEST" })
  t.equal((await endpoints.call("/exa/search/", undefined)).status, 405)
  t.equal((await endpoints.call("/exa/find/", {})).status, 404)
  t.same(endpoints.vendor.received, [])
})

t.test("a catalog without search models offers none", async t => {
  const endpoints = await openEndpoints(t, { only: { ...models["exa-search"]!, price } })
  t.equal((await endpoints.call("/exa/contents/", { urls: [] })).status, 404)
})

t.test("the sandbox answers, with what it cost", async t => {
  const gateway = await openSandboxed(t, models, { exa: { origin: "https://exa.invalid", secrets: [] } })
  const call = async (name: string, body: object) => told(await gateway.call(`/vendor-c/${name}/`, body))
  t.match(await call("search", { query: "tea", numResults: 2, contents: { text: true } }), {
    charged: "9",
    results: [{ title: "About tea", text: String }, { url: "https://example.com/2" }],
  })
  t.match(await call("contents", { urls: ["https://example.com/a", "nonsense"] }), {
    charged: "1",
    statuses: [{ status: "success" }, { status: "error" }],
  })
  t.match(await call("answer", { query: "tea" }), { charged: "5", answer: /tea/ })
  t.match(await call("search", {}), { status: 400, tag: "INVALID_REQUEST" })
  const stream = await (await gateway.call("/vendor-c/answer/", { query: "tea", stream: true })).text()
  t.match(stream, /^data: \{"choices".*\n\n/)
  t.equal((await gateway.balance()).spent, (9 + 1 + 5 + 5) * 1_000_000)
})
