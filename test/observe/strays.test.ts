/** What met no route leaves one line with the id of its answer, and nothing in it that a client should not write. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import t, { type Test } from "tap"
import { GatewayError } from "../../core/errors.ts"
import type { Host, Stray } from "../../core/host.ts"
import { refuseSocket } from "../../core/http/refuse.ts"
import { createLog } from "../../core/observe/log.ts"
import { type TestGateway, type TestGatewayOptions, testGateway } from "../../core/testing.ts"
import accessLog from "../../plugins/access-log.ts"
import { rawClient } from "../fixtures/client.ts"
import { answering } from "../fixtures/vendor.ts"
import { openRelay, sample, wires } from "../fixtures/wires.ts"

const open = async (t: Test, gateway: TestGatewayOptions["gateway"] = {}) => {
  const opened = await testGateway({ gateway })
  t.teardown(() => opened.close())
  return opened
}

/** The answer to these bytes, which end their connection. */
const heard = async (t: Test, { url }: TestGateway, bytes: string): Promise<string> => {
  const client = await rawClient(t, url)
  client.socket.end(bytes)
  return client.closed
}

const request = (line: string, ...fields: readonly string[]): string =>
  [`${line} HTTP/1.1`, "host: gateway", "connection: close", ...fields, "", ""].join("\r\n")
const upgrade = ["connection: upgrade", "upgrade: websocket"]

const idOf = (answer: string): string => /x-request-id: (\S+)/i.exec(answer)![1]!
const linesOf = (gateway: TestGateway, id: string) => gateway.lines.filter(line => line.id === id)
const strayLines = ({ lines }: TestGateway) => lines.filter(({ msg }) => msg === "refused before any route")

interface Line {
  readonly method?: string
  readonly path?: string
  readonly status: number
  readonly code: string
}

const cases: readonly (readonly [name: string, bytes: string, line: Line])[] = [
  [
    "a wrong base URL",
    request("GET /v1/models?key=canary"),
    { method: "GET", path: "/v1/models", status: 404, code: "not_found" },
  ],
  [
    "another method",
    request("DELETE /v1/gateway/models/?key=canary"),
    { method: "DELETE", path: "/v1/gateway/models/", status: 405, code: "method_not_allowed" },
  ],
  [
    "two hosts",
    request("GET /v1/gateway/models/?key=canary", "host: canary"),
    { method: "GET", path: "/v1/gateway/models/", status: 400, code: "invalid_request" },
  ],
  [
    "an absolute target",
    request("GET http://user:canary@evil/x?key=canary"),
    { method: "GET", path: "http://[secret]@evil/x", status: 400, code: "invalid_request" },
  ],
  ["a fragment", request("GET /x#canary"), { method: "GET", path: "/x", status: 400, code: "invalid_request" }],
  ["an unknown method", request("LINK /x"), { method: "LINK", path: "/x", status: 501, code: "not_implemented" }],
  [
    "an expectation that nobody knows",
    request("POST /x", "expect: canary"),
    { method: "POST", path: "/x", status: 417, code: "expectation_failed" },
  ],
  [
    "a WebSocket on a plain route",
    request("GET /v1/gateway/models/?key=canary", ...upgrade),
    { method: "GET", path: "/v1/gateway/models/", status: 426, code: "upgrade_required" },
  ],
  [
    "a tunnel",
    request("CONNECT evil:443"),
    { method: "CONNECT", path: "evil:443", status: 501, code: "not_implemented" },
  ],
  ["what is no request", "canary\r\n\r\n", { status: 400, code: "invalid_request" }],
]

t.test("each leaves one line, with the id of the answer and why it was refused, and is counted", async t => {
  const gateway = await open(t)
  for (const [name, bytes, line] of cases) {
    const answer = await heard(t, gateway, bytes)
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${line.status} `), name)
    t.match(answer, /\r\nserver-timing: gateway;dur=.*\r\nx-sandbox: true\r\n/, `${name}: as every answer`)
    const [written, ...more] = linesOf(gateway, idOf(answer))
    const { level, time, plugin, id, error, msg, ...told } = written!
    t.same(told, { ...line, outcome: "rejected" }, name)
    t.match({ level, plugin }, { level: "info", plugin: "access-log" }, name)
    t.ok(answer.includes(JSON.stringify(error)), `${name}: the line says what the answer says`)
    t.same(more, [], name)
  }
  t.equal(strayLines(gateway).length, cases.length)
  t.notMatch(JSON.stringify(gateway.lines), "canary")
  const metrics = await gateway.metrics()
  const counted = (method: string, status: number) =>
    sample(metrics, `tollgate_http_requests_total{route="other",method="${method}",status="${status}"}`)
  t.same([counted("GET", 404), counted("DELETE", 405), counted("GET", 400)], [1, 1, 3])
  t.same([counted("other", 501), counted("POST", 417), counted("GET", 426), counted("other", 400)], [2, 1, 1, 1])
})

t.test("a client's own id stands in the line as in those of calls: cut", async t => {
  const gateway = await open(t)
  const answer = await heard(t, gateway, request("GET /x", `x-request-id: ${"i".repeat(200)}`))
  t.match(linesOf(gateway, idOf(answer)), [{ client_request_id: "i".repeat(128) }])
})

t.test("a path is cut, and brings no line of its own", async t => {
  const gateway = await open(t)
  const forged = `/x%0a%0d{"level":"error"}",${"y".repeat(9_000)}`
  const answer = await heard(t, gateway, request(`GET ${forged}`))
  t.same(
    linesOf(gateway, idOf(answer)).map(({ path }) => path),
    [`${forged.slice(0, 256)}... (${forged.length} characters)`],
  )
})

t.test("a line is one line whatever the request holds", async t => {
  const written: string[] = []
  const lines = createLog({ level: "info", destination: { write: line => void written.push(line) } })
  let tell = (_: Stray): void => void t.fail("nothing was listened to")
  const log = lines.child({ plugin: "access-log" })
  accessLog.setup({ log, use() {}, onStray: (listener: typeof tell) => (tell = listener) } as unknown as Host)
  const strange = Array.from({ length: 0x2030 }, (_, code) => String.fromCharCode(code)).join("")
  for (let at = 0; at < strange.length; at += 100) {
    const piece = strange.slice(at, at + 100)
    const request = { method: piece, path: `/${piece}`, headers: { "x-request-id": piece } }
    tell({ id: "1", error: new GatewayError("not_found", "Not found"), request })
  }
  t.equal(written.length, Math.ceil(strange.length / 100))
  for (const line of written) {
    t.notMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
    t.match(JSON.parse(line), { status: 404 })
  }
})

t.test("a plugin that fails over one is counted and logged, and takes no answer away", async t => {
  const failing = {
    name: "ear",
    api: 1,
    setup: (host: Host) =>
      host.onStray(() => {
        throw new Error("deaf")
      }),
  }
  const gateway = await testGateway({ plugins: [failing as never] })
  t.teardown(() => gateway.close())
  const answer = await heard(t, gateway, request("GET /x"))
  t.match(answer, /^HTTP\/1\.1 404 /)
  t.match(
    linesOf(gateway, idOf(answer)).find(({ level }) => level === "error"),
    { plugin: "ear", err: { message: "deaf" } },
  )
  t.equal(sample(await gateway.metrics(), 'tollgate_plugin_errors_total{plugin="ear"}'), 1)
})

t.test("calls have their own line and no other, also when the connection breaks within their body", async t => {
  const relay = await openRelay(t, answering({ body: wires.messages.whole }))
  const served = await relay.call(wires.messages.path(false), wires.messages.request(false))
  t.equal(linesOf(relay, served.headers.get("x-request-id")!).length, 1)
  const fields = ["user-agent: x", `authorization: Bearer ${relay.key}`, "transfer-encoding: chunked"]
  t.match(
    await heard(t, relay, `${request(`POST /v1/gateway${wires.messages.path(false)}`, ...fields)}xyz\r\n`),
    /^HTTP\/1\.1 400/,
  )
  await relay.spent()
  t.same(strayLines(relay), [])
})

t.test("what comes behind the last request of its connection gets no answer and no line", async t => {
  const gateway = await open(t)
  for (const behind of [request("GET /behind"), request("GET /behind", "expect: what")]) {
    const answer = await heard(t, gateway, `GET //ambiguous HTTP/1.1\r\nhost: gateway\r\n\r\n${behind}`)
    t.same(answer.match(/HTTP\/1\.1 \d{3}/g), ["HTTP/1.1 400"])
  }
  t.same(
    strayLines(gateway).map(({ path }) => path),
    ["//ambiguous", "//ambiguous"],
  )
})

t.test("without the access log there are no lines, from a reload on too", async t => {
  const gateway = await open(t)
  const plugins = ["metrics", "auth", "rate-limit", "model", "pricing"]
  await heard(t, gateway, request("GET /one"))
  t.same(await gateway.reload({ gateway: { plugins } }), [])
  await heard(t, gateway, request("GET /two"))
  t.same(
    strayLines(gateway).map(({ path }) => path),
    ["/one"],
  )
  const series = 'tollgate_http_requests_total{route="other",method="GET",status="404"}'
  t.equal(sample(await gateway.metrics(), series), 2)
})

t.test("a connection that said nothing before it was given up is no request", async t => {
  const answered = new Map<string, boolean>()
  const server = createServer(async (socket: Socket) => {
    const [said] = (await once(socket, "readable")) && [String(socket.read() ?? "")]
    answered.set(said, refuseSocket(socket, new GatewayError("request_timeout", "Late"), "1", []))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  t.teardown(() => server.close())
  for (const said of ["", "GET /"]) {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
    socket.end(said)
    socket.resume()
    await once(socket, "close")
  }
  t.same(
    [...answered],
    [
      ["", false],
      ["GET /", true],
    ],
  )
})
