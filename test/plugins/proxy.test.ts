/** Any other API under a path of ours: what crosses, what it costs, and what does not cross. */

import { randomBytes } from "node:crypto"
import { request as httpRequest } from "node:http"
import t, { type Test } from "tap"
import { testGateway, testKey } from "../../core/testing.ts"
import { sha256 } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, fakeVendor, streaming } from "../fixtures/vendor.ts"
import { echoServer } from "../fixtures/web-socket.ts"

const open = async (t: Test, origin: string, line: object = {}, vendor: object = {}, others: object = {}) => {
  const gateway = await testGateway({
    env: { K: "vendor-secret" },
    gateway: {
      sandbox: false,
      shutdown: "200ms",
      vendors: { tools: { adapter: "http", origin, secrets: [{ env: "K" }], ...vendor }, ...others },
      plugins: [
        "metrics",
        "access-log",
        "edge",
        "body-size",
        "auth",
        "rate-limit",
        "model",
        "pricing",
        { proxy: { path: "/tools/x/", vendor: "tools", price: 2, ...line } },
      ],
    },
    catalog: { models: {} },
  })
  t.teardown(() => gateway.close())
  return gateway
}

t.test("bytes of any kind cross both ways, path and query as they were written, at the flat price", async t => {
  const sent = randomBytes(100_000)
  const back = randomBytes(50_000)
  const vendor = await fakeVendor(
    t,
    answering({ status: 200, headers: { "content-type": "image/png", etag: '"1"' }, body: back }),
  )
  const gateway = await open(t, vendor.origin)
  const response = await gateway.call("/tools/x/a%20b/c?q=1&q=%2F", sent, { headers: { "content-type": "image/jpeg" } })
  t.equal(response.status, 200)
  t.equal(response.headers.get("content-type"), "image/png")
  t.equal(response.headers.get("etag"), '"1"')
  t.equal(response.headers.get("x-credits-charged"), "2")
  t.equal(sha256(new Uint8Array(await response.arrayBuffer())), sha256(back))
  const [asked] = vendor.requests
  t.match(asked?.head, /^POST \/a%20b\/c\?q=1&q=%2F HTTP\/1\.1\r\n/)
  t.match((asked?.head ?? "").toLowerCase(), /authorization: bearer vendor-secret/)
  t.notMatch(asked?.head, testKey)
  t.equal(sha256(asked?.body as Buffer), sha256(sent))
  t.equal((await gateway.balance()).spent, 2_000_000)
})

t.test("each method passes, and a question without a body has none", async t => {
  const vendor = await fakeVendor(t, answering({ status: 200, headers: {}, body: Buffer.from("ok") }))
  const gateway = await open(t, vendor.origin)
  for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
    const response = await gateway.call("/tools/x/thing", undefined, { method })
    t.equal(response.status, 200, method)
    await response.text()
  }
  t.same(
    vendor.requests.map(({ head }) => head.split(" ")[0]),
    ["GET", "PUT", "PATCH", "DELETE"],
  )
})

t.test("a refusal of the vendor costs nothing; a refusal of our account is never the client's", async t => {
  const vendor = await fakeVendor(
    t,
    answering({ status: 404, headers: { "content-type": "text/plain" }, body: Buffer.from("no such thing") }),
  )
  const gateway = await open(t, vendor.origin)
  const missing = await gateway.call("/tools/x/thing", undefined, { method: "GET" })
  t.equal(missing.status, 404)
  t.equal(await missing.text(), "no such thing")
  t.equal((await gateway.balance()).spent, 0)
  const account = await fakeVendor(
    t,
    answering({ status: 401, headers: {}, body: Buffer.from("vendor-secret is bad") }),
  )
  const other = await open(t, account.origin)
  const refused = await other.call("/tools/x/thing", undefined, { method: "GET" })
  t.equal(refused.status, 502)
  t.notMatch(await refused.text(), "vendor-secret")
})

t.test("a stream of events passes as it is, for the price of one request", async t => {
  const body = 'event: tick\ndata: {"at":1}\n\n: quiet\n\ndata: 2\n\n'
  const vendor = await fakeVendor(t, streaming(body, { size: 7 }))
  const gateway = await open(t, vendor.origin)
  const response = await gateway.call("/tools/x/ticks", undefined, { method: "GET" })
  t.match(response.headers.get("content-type"), /^text\/event-stream/)
  t.equal(await response.text(), body)
  t.equal((await gateway.balance()).spent, 2_000_000)
})

t.test("a path of the vendor's origin stands before the rest, whatever it ends with", async t => {
  const vendor = await fakeVendor(t, answering({ body: "{}" }))
  const echo = await echoServer()
  t.teardown(() => echo.close())
  for (const end of ["", "/"]) {
    const relayed = await open(t, `${vendor.origin}/api/v2${end}`)
    await (await relayed.call("/tools/x/a?q=1", undefined, { method: "GET" })).text()
    const carried = await open(t, `${echo.origin}/api/v2${end}`)
    const socket = await socketTo(`${carried.url}/tools/x/a?q=1`, { authorization: `Bearer ${testKey}` })
    socket.end()
  }
  t.same(
    vendor.requests.map(({ target }) => target),
    ["/api/v2/a?q=1", "/api/v2/a?q=1"],
  )
  t.same(
    echo.asked.map(({ url }) => url),
    ["/api/v2/a?q=1", "/api/v2/a?q=1"],
  )
})

t.test("the gateway's own errors bear the shape that the line asks for", async t => {
  const gateway = await open(t, "http://127.0.0.1:9", { dialect: "http" })
  const refused = await fetch(`${gateway.url}/tools/x/thing`, { headers: { "user-agent": "test" } })
  t.equal(refused.status, 401)
  t.same(await refused.json(), {
    detail: "Authorization header is not supplied",
    error: {
      message: "Authorization header is not supplied",
      type: "authentication_error",
      code: "invalid_api_key",
      param: null,
    },
  })
  const gone = await gateway.call("/tools/x/thing", undefined, { method: "GET" })
  t.match(await gone.json(), { error: { type: "server_error", code: "upstream_unreachable" } })
})

t.test("a line whose vendor has no secret yet is left out, and the log says what is missing", async t => {
  const origin = "http://127.0.0.1:9"
  const other = { adapter: "http", origin, secrets: [{ env: "K" }] }
  const gateway = await open(t, origin, {}, { secrets: [{ env: "NOT_SET" }], optional: true }, { other })
  t.equal((await gateway.call("/tools/x/thing", undefined, { method: "GET" })).status, 404)
  t.match(
    gateway.lines.filter(({ level }) => level === "warn"),
    [{ path: "/tools/x/", vendor: "tools", unset: ["NOT_SET"] }],
  )
})

t.test("the gateway's own guards stand before it", async t => {
  const vendor = await fakeVendor(t, answering({ status: 200, headers: {}, body: Buffer.from("ok") }))
  const gateway = await open(t, vendor.origin)
  t.equal((await fetch(`${gateway.url}/tools/x/thing`)).status, 401)
  for (const path of ["/tools/x/../y", "/tools/x//y", "/tools/x/%2e%2e/y"]) {
    const status = await rawStatus(gateway.url, path)
    t.ok(status === 404 || status === 400, `${path}: ${status}`)
  }
  t.equal(vendor.requests.length, 0)
})

const rawStatus = (url: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port, pathname } = new URL(url)
    const headers = { authorization: `Bearer ${testKey}`, "user-agent": "test" }
    httpRequest({ hostname, port, path: pathname + path, headers }, response => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on("error", reject)
      .end()
  })

/** The handshake with a key in a header, as servers do it: browsers cannot, and wait for realtime tokens. */
const socketTo = (
  url: string,
  headers: Record<string, string>,
): Promise<{ status: number; fields: object; say(text: string): Promise<string>; end(): void }> =>
  new Promise((resolve, reject) => {
    const { hostname, port, pathname, search } = new URL(url)
    const handshake = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
    }
    const asking = httpRequest({
      hostname,
      port,
      path: pathname + search,
      headers: { "user-agent": "test", ...handshake, ...headers },
    })
    asking.on("error", reject)
    asking.on("response", response => {
      response.resume()
      resolve({ status: response.statusCode ?? 0, fields: response.headers, say: async () => "", end: () => {} })
    })
    asking.on("upgrade", (response, socket) => {
      const say = (text: string): Promise<string> =>
        new Promise(told => {
          socket.once("data", frame => told(frame.subarray(2).toString()))
          socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]))
        })
      resolve({ status: response.statusCode ?? 0, fields: response.headers, say, end: () => socket.destroy() })
    })
    asking.end()
  })

t.test(
  "a WebSocket is carried with our credential, at the flat price, and neither side sees the other's secrets",
  async t => {
    const echo = await echoServer()
    t.teardown(() => echo.close())
    const gateway = await open(t, echo.origin)
    const sent = { authorization: `Bearer ${testKey}`, cookie: "c=1", "accept-language": "ko" }
    const socket = await socketTo(`${gateway.url}/tools/x/live`, sent)
    t.equal(socket.status, 101)
    t.notOk("set-cookie" in socket.fields || "x-account" in socket.fields)
    t.equal(await socket.say("one"), "echo one")
    t.equal(await socket.say("two"), "echo two")
    t.equal(echo.asked[0]?.url, "/live")
    t.match(echo.asked[0]?.headers, {
      authorization: "Bearer vendor-secret",
      "user-agent": "tollgate",
      "accept-language": "ko",
    })
    t.notOk("cookie" in (echo.asked[0]?.headers ?? {}))
    const closed = new Promise<void>(resolve => echo.sockets[0]?.once("close", () => resolve()))
    socket.end()
    await closed
    t.equal((await gateway.balance()).spent, 2_000_000)
    await until(() => gateway.lines.some(({ msg }) => msg === "call"))
    t.match(
      gateway.lines.find(({ msg }) => msg === "call"),
      { status: 101, vendor: "tools", usage: { requests: 1 }, source: "vendor", micros: 2_000_000, streamed: true },
      "and the log says so",
    )
  },
)

t.test("a WebSocket without a key is refused before the vendor hears of it", async t => {
  const echo = await echoServer()
  t.teardown(() => echo.close())
  const gateway = await open(t, echo.origin)
  t.equal((await socketTo(`${gateway.url}/tools/x/live`, {})).status, 401)
  t.equal(echo.asked.length, 0)
  t.equal((await socketTo(`${gateway.url}/models/`, { authorization: `Bearer ${testKey}` })).status, 426)
})

t.test("a vendor that refuses the handshake, or is not there, is an error that costs nothing", async t => {
  const refusing = await echoServer(403)
  t.teardown(() => refusing.close())
  const gateway = await open(t, refusing.origin)
  t.equal((await socketTo(`${gateway.url}/tools/x/live`, { authorization: `Bearer ${testKey}` })).status, 502)
  const gone = await open(t, "http://127.0.0.1:9")
  t.equal((await socketTo(`${gone.url}/tools/x/live`, { authorization: `Bearer ${testKey}` })).status, 502)
  for (const [one, status] of [
    [gateway, 403],
    [gone, 0],
  ] as const) {
    t.match(await one.balance(), { spent: 0, held: 0 })
    t.match(
      one.lines.find(({ msg }) => msg === "call"),
      { outcome: "rejected", vendor: "tools", attempts: [{ vendor: "tools", secret: "K", status }] },
    )
  }
})

t.test("a vendor that refuses our account is not asked again for a WebSocket while its secret rests", async t => {
  for (const status of [401, 403]) {
    const refusing = await echoServer(status)
    t.teardown(() => refusing.close())
    const gateway = await open(t, refusing.origin)
    for (let time = 1; time <= 2; time += 1) {
      t.equal((await socketTo(`${gateway.url}/tools/x/live`, { authorization: `Bearer ${testKey}` })).status, 502)
    }
    t.equal(refusing.asked.length, 1)
    t.match(await gateway.balance(), { spent: 0, held: 0 })
  }
})

t.test("a vendor that never answers a handshake is left after its time", async t => {
  const vendor = await fakeVendor(t, () => new Promise(() => {}))
  const gateway = await open(t, vendor.origin, {}, { timeouts: { connect: "50ms", first_byte: "50ms" } })
  t.equal((await socketTo(`${gateway.url}/tools/x/live`, { authorization: `Bearer ${testKey}` })).status, 502)
  await until(() => vendor.connections.open === 0)
  t.match(await gateway.balance(), { spent: 0, held: 0 })
})

t.test("open WebSockets end when the gateway stops", async t => {
  const echo = await echoServer()
  t.teardown(() => echo.close())
  const gateway = await open(t, echo.origin)
  const socket = await socketTo(`${gateway.url}/tools/x/live`, { authorization: `Bearer ${testKey}` })
  t.equal(await socket.say("one"), "echo one")
  const closed = new Promise<void>(resolve => echo.sockets[0]?.once("close", () => resolve()))
  await gateway.gateway.stop()
  await closed
  t.pass("closed")
})

t.test("a line that names no vendor of the configuration stops the start", async t => {
  await t.rejects(open(t, "http://127.0.0.1:9", { vendor: "nobody" }), { message: /no vendor nobody/ })
  await t.rejects(open(t, "http://127.0.0.1:9", { path: "tools" }), { message: /path/ })
})
