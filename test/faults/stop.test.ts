/** What a stop does to clients that still send, and to plugins that still wait for a bill. */
import t from "tap"
import { testKey } from "../../core/testing.ts"
import { rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, chunked, type Handler, lastChunk, streamHead } from "../fixtures/vendor.ts"
import { openRelay, sample, wires } from "../fixtures/wires.ts"

const head = (length: number): string =>
  [
    "POST /v1/gateway/vendor-a/v1/messages HTTP/1.1",
    "host: gateway",
    `authorization: Bearer ${testKey}`,
    "user-agent: raw",
    `content-length: ${length}`,
    "",
    "",
  ].join("\r\n")

t.test("an upload that outlasts the time to stop gets a 503 that says when to try again", async t => {
  const relay = await openRelay(t, answering({ body: wires.messages.whole }), { gateway: { shutdown: "20ms" } })
  const client = await rawClient(t, relay.url)
  client.write(head(5_000_000) + "x".repeat(1_000_000))
  await until(async () => sample(await relay.metrics(), "tollgate_body_bytes_in_flight") >= 1_000_000)
  const stopped = relay.gateway.stop()
  const answer = await client.until("shutting down")
  client.write("y") // it sends on: nothing breaks under it
  t.match(answer, /^HTTP\/1\.1 503 /)
  t.match(answer, /retry-after: 1\r\n/)
  t.match(answer, /connection: close\r\n/)
  client.socket.end()
  await stopped
  const line = relay.lines.find(({ msg }) => msg === "call")
  t.match(line, { status: 503, code: "draining", outcome: "rejected" })
  t.equal(relay.vendor.requests.length, 0)
})

t.test("a plugin is taken down after the bill that it waits for", async t => {
  const happened: string[] = []
  const exporter = {
    name: "exporter",
    api: 1,
    setup(host: { use(step: object): void }) {
      host.use({
        async run(_: unknown, next: () => Promise<{ later?: Promise<{ micros?: number }> }>) {
          const outcome = await next()
          void outcome.later?.then(({ micros = 0 }) => happened.push(micros > 0 ? "billed" : "free"))
          return outcome
        },
      })
      return () => void happened.push("torn down")
    },
  }
  const gate = Promise.withResolvers<void>()
  const [first = "", ...rest] = wires.messages.events
  const handler: Handler = async ({ send }) => {
    await send(streamHead + chunked(first + rest[0] + rest[1]))
    await gate.promise
    await send(chunked(rest.slice(2).join("")) + lastChunk)
  }
  const relay = await openRelay(t, handler, { plugins: [exporter as never] })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wires.messages.request(true))
  client.write(head(body.length) + body)
  await client.until("content_block")
  client.socket.destroy()
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
  t.same(await relay.reload({}), [])
  gate.resolve()
  await until(() => happened.length === 2)
  t.same(happened, ["billed", "torn down"])
})
