/** WebSockets that come to nothing: whoever leaves, refuses or keeps its half, both sides end, and only an open one is paid. */
import t, { type Test } from "tap"
import type { TestClock } from "../../core/observe/clock.ts"
import { type TestGateway, testClock, testGateway, testKey } from "../../core/testing.ts"
import { type RawClient, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { chunked, type FakeVendor, fakeVendor, type Handler, headOf } from "../fixtures/vendor.ts"
import { sample } from "../fixtures/wires.ts"

const handshake = (fields: readonly string[]): string =>
  [
    "GET /v1/gateway/tools/x/live HTTP/1.1",
    "host: gateway",
    "user-agent: raw",
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
    ...fields,
    "",
    "",
  ].join("\r\n")

const accept =
  "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: x\r\n\r\n"

interface Site extends TestGateway {
  readonly vendor: FakeVendor
  /** A client that asks for a WebSocket. */
  ask(fields?: readonly string[]): Promise<RawClient>
  /** Resolves when no call is left; how the calls ended, and what they cost together. */
  over(): Promise<{ readonly ends: readonly unknown[]; readonly spent: number; readonly held: number }>
}

const open = async (t: Test, handler: Handler, clock?: TestClock): Promise<Site> => {
  const vendor = await fakeVendor(t, handler)
  const gateway = await testGateway({
    ...(clock === undefined ? {} : { clock }),
    env: { K: "vendor-secret" },
    catalog: { models: {} },
    gateway: {
      sandbox: false,
      shutdown: "20ms",
      vendors: { tools: { adapter: "http", origin: vendor.origin, secrets: [{ env: "K" }] } },
      plugins: [
        "metrics",
        "access-log",
        "auth",
        "model",
        "pricing",
        { proxy: { path: "/tools/x/", vendor: "tools", price: 2 } },
      ],
    },
  })
  t.teardown(() => gateway.close())
  return Object.assign(gateway, {
    vendor,
    async ask(fields = [`authorization: Bearer ${testKey}`]) {
      const client = await rawClient(t, gateway.url)
      client.write(handshake(fields))
      return client
    },
    async over() {
      await until(async () => sample(await gateway.metrics(), "tollgate_requests_in_flight") === 0)
      const { spent, held } = await gateway.balance()
      const calls = gateway.lines.filter(({ msg }) => msg === "call")
      return { ends: calls.map(({ status, code, outcome }) => code ?? `${outcome} ${status}`), spent, held }
    },
  })
}

const leaving: Readonly<Record<string, (client: RawClient) => void>> = {
  "resets its connection": ({ socket }) => void socket.resetAndDestroy(),
  "closes its sending side": ({ socket }) => void socket.end(),
}

for (const [name, leave] of Object.entries(leaving)) {
  t.test(`a client that ${name} before the vendor took its WebSocket: no fault of the vendor's, and free`, async t => {
    const gate = Promise.withResolvers<void>()
    const site = await open(t, ({ send }) => gate.promise.then(() => send(accept)))
    for (let left = 1; left <= 10; left += 1) {
      const client = await site.ask()
      await site.vendor.next()
      leave(client)
      await until(() => site.vendor.connections.open === 0)
    }
    t.same(await site.over(), { ends: Array(10).fill("client_left"), spent: 0, held: 0 })
    gate.resolve()
    await (await site.ask()).until("101 ")
    t.pass("the vendor is asked again")
  })
}

t.test("WebSockets that a vendor does not know are attempts, and rest it for nobody", async t => {
  const site = await open(t, ({ request, send }) =>
    send(request.headers.upgrade === undefined ? headOf({ status: 204 }) : headOf({ status: 404 })),
  )
  for (let asked = 1; asked <= 5; asked += 1) await (await site.ask()).until("502 ")
  t.equal((await site.call("/tools/x/live")).status, 204)
  const attempts = 'tollgate_upstream_requests_total{vendor="tools",model="proxy.tools.x",outcome="not_found"}'
  t.equal(sample(await site.metrics(), attempts), 5)
})

t.test("WebSockets of a vendor that is overloaded rest it", async t => {
  const site = await open(t, ({ send }) => send(headOf({ status: 503 })))
  for (let asked = 1; asked <= 6; asked += 1) await (await site.ask()).until("502 ")
  t.equal(site.vendor.requests.length, 5)
})

t.test("a stop while the vendor thinks about a WebSocket is a 503, and waits for nobody", async t => {
  const site = await open(t, () => new Promise(() => {}))
  const client = await site.ask()
  await site.vendor.next()
  const stopped = site.gateway.stop()
  t.match(await client.until("shutting down"), /^HTTP\/1\.1 503 /)
  client.socket.end()
  await stopped
  t.equal(site.vendor.connections.open, 0)
  t.match(
    site.lines.filter(({ msg }) => msg === "call"),
    [{ status: 503, code: "draining" }],
  )
})

t.test("clients that never close their half are waited for, but not for ever", async t => {
  const site = await open(t, async ({ send, end }) => {
    await send(`${accept}the last word`)
    end()
  })
  const refused = await site.ask([])
  await refused.until("401 ")
  const ended = await site.ask()
  await ended.until("the last word")
  t.same(await site.over(), { ends: ["unauthorized", "delivered 101"], spent: 2_000_000, held: 0 })
  await site.gateway.stop()
  t.pass("neither keeps the gateway from its end")
})

t.test("a WebSocket lives longer than a step may; a stop breaks it, and it stays paid", async t => {
  const clock = testClock()
  const site = await open(t, ({ send }) => send(`${accept}a word`), clock)
  const client = await site.ask()
  t.match(await client.until("a word"), /\r\nx-request-id: [0-9a-f-]{36}\r\n/i)
  await clock.advance(60_000)
  t.equal(site.vendor.connections.open, 1)
  const stopped = site.gateway.stop()
  await clock.advance(1_000)
  await client.closed
  client.socket.end()
  await stopped
  t.match(
    site.lines.filter(({ msg }) => msg === "call"),
    [{ status: 101, outcome: "broken", micros: 2_000_000 }],
  )
})

t.test("a secret that rested is well again when its WebSocket opens", async t => {
  const clock = testClock()
  const site = await open(
    t,
    ({ send }) => send(site.vendor.requests.length > 1 ? accept : "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"),
    clock,
  )
  await (await site.ask()).until("502 ")
  await (await site.ask()).until("502 ")
  t.equal(site.vendor.requests.length, 1)
  await clock.advance(31_000)
  await (await site.ask()).until("101 ")
  await (await site.ask()).until("101 ")
  t.equal(site.vendor.requests.length, 3)
})

t.test("a vendor that refuses a WebSocket at endless length is left at once", async t => {
  const site = await open(t, ({ send }) =>
    send(`HTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\n\r\n${chunked("no")}`),
  )
  await (await site.ask()).until("502 ")
  await until(() => site.vendor.connections.open === 0)
  t.same(await site.over(), { ends: ["upstream_unavailable"], spent: 0, held: 0 })
})

const echoing: Handler = async ({ socket, send }) => {
  await send(accept)
  socket.on("data", bytes => socket.write(bytes))
}

t.test("a WebSocket in which neither side says anything ends when the vendor's idle time is over", async t => {
  const clock = testClock()
  const site = await open(t, echoing, clock)
  const client = await site.ask()
  await client.until("101 ")
  for (const word of ["one", "two", "three"]) {
    await clock.advance(119_000)
    client.write(word)
    await client.until(word)
  }
  t.equal(site.vendor.connections.open, 1)
  await clock.advance(121_000)
  await client.closed
  t.same(await site.over(), { ends: ["broken 101"], spent: 2_000_000, held: 0 })
  t.match(site.lines.find(({ msg }) => msg === "call")?.attempts, [{ status: 101, error: "upstream_timeout" }])
  await until(() => site.vendor.connections.open === 0)
})

t.test("a WebSocket ends when the longest time of a stream is over, however much is said in it", async t => {
  const clock = testClock()
  const site = await open(t, echoing, clock)
  const client = await site.ask()
  await client.until("101 ")
  for (let minute = 1; minute < 60; minute += 1) {
    await clock.advance(60_000)
    client.write(`${minute} `)
    await client.until(`${minute} `)
  }
  t.equal(site.vendor.connections.open, 1)
  await clock.advance(60_000)
  await client.closed
  t.same(await site.over(), { ends: ["broken 101"], spent: 2_000_000, held: 0 })
})

t.test("while the vendor's only secret rests, a WebSocket is refused with the time to wait", async t => {
  const site = await open(t, ({ send }) => send("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"))
  await (await site.ask()).until("502 ")
  const resting = await site.ask()
  t.match(await resting.until("\r\n\r\n"), /^HTTP\/1\.1 502 .*\r\nretry-after: [1-9]\d*\r\n/s)
  t.equal(site.vendor.requests.length, 1, "the vendor is not asked again")
})
