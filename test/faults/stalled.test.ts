/** Clients that stop reading for good: nothing waits for them without end, and no step is blamed for them. */
import t, { type Test } from "tap"
import { testClock } from "../../core/testing.ts"
import { postHead, type RawClient, rawClient } from "../fixtures/client.ts"
import { publicEndpoint } from "../fixtures/endpoints.ts"
import { until, untilStill } from "../fixtures/until.ts"
import { chunked, type Handler, streamHead } from "../fixtures/vendor.ts"
import { beginning, openRelay, type Relay, sample, wires } from "../fixtures/wires.ts"

const hourMs = 3_600_000

const inFlight = async (relay: Relay): Promise<number> => sample(await relay.metrics(), "tollgate_requests_in_flight")

/** Reads until the text came, and never again. */
const readsUntil = async (t: Test, relay: Relay, request: string, text: string): Promise<RawClient> => {
  const client = await rawClient(t, relay.url)
  client.write(request)
  await client.until(text)
  client.socket.pause()
  return client
}

for (const wire of [wires.messages, wires.chat]) {
  t.test(`${wire.name}: a stream ends with its own time, its call when the client had as long again`, async t => {
    const clock = testClock()
    const more = chunked(wire.events.find(event => event.includes("Grüße"))!.replace("Grüße", "x".repeat(60_000)))
    let sent = 0
    const handler: Handler = async ({ send, socket }) => {
      await send(streamHead + chunked(beginning(wire)))
      for (; !socket.destroyed; sent += 1) await send(more)
    }
    const relay = await openRelay(t, handler, { clock, settings: { timeouts: { total_stream: "1h" } } })
    const body = JSON.stringify(wire.request(true))
    const head = postHead(new URL(relay.url + wire.path(true)).pathname, [`content-length: ${body.length}`])
    await readsUntil(t, relay, head + body, "Gr")
    await untilStill(() => sent)
    await clock.advance(hourMs + 1_000)
    await until(() => relay.vendor.connections.open === 0)
    t.equal(await inFlight(relay), 1, "the client may still take what came")
    await clock.advance(hourMs + 1_000)
    t.ok((await relay.spent()) > 0)
    t.match(
      relay.lines.filter(({ msg }) => msg === "call"),
      [{ status: 200, outcome: "broken" }],
    )
  })
}

t.test("an answer of the gateway's own waits for its client, and not for ever", async t => {
  const clock = testClock()
  const large = publicEndpoint("large", call => call.reply(200, Buffer.alloc(30_000_000, "x")))
  const relay = await openRelay(t, undefined, { clock, plugins: [large] })
  await readsUntil(t, relay, postHead("/v1/gateway/large/", ["content-length: 0"]), "xxx")
  await clock.advance(20_000)
  t.equal(await inFlight(relay), 1, "longer than a step may take")
  await clock.advance(hourMs)
  await until(async () => (await inFlight(relay)) === 0)
  t.match(
    relay.lines.filter(({ msg }) => msg === "call"),
    [{ status: 200, outcome: "abandoned" }],
  )
  t.notMatch(await relay.metrics(), /tollgate_plugin_errors_total\{plugin="large"\} 1/)
})
