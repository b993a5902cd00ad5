/** A vendor that thinks in silence: translated streams say that they live, relayed ones are the vendor's own bytes. */
import t from "tap"
import { testClock } from "../../core/testing.ts"
import { postHead, rawClient } from "../fixtures/client.ts"
import { goodMicros, halting, openRelay, type Wire, wires } from "../fixtures/wires.ts"

const ask = async (t: Parameters<typeof openRelay>[0], wire: Wire) => {
  const clock = testClock()
  const gate = Promise.withResolvers<void>()
  const relay = await openRelay(t, halting(wire, gate.promise), { clock, settings: { timeouts: { idle: "10m" } } })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wire.request(true))
  client.write(
    `${postHead(`/v1/gateway${wire.path(true)}`, [`content-length: ${Buffer.byteLength(body)}`, "connection: close"])}${body}`,
  )
  await client.until("Gr")
  return { clock, relay, client, gate }
}

const pings = (text: string): number =>
  text.match(/: keep-alive\n\n|event: ping\ndata: \{"type": "ping"\}\n\n/g)?.length ?? 0

for (const wire of [wires.chat, wires["chat on messages"]]) {
  t.test(`${wire.name}: each 15 seconds of silence are bridged, and the answer is whole`, async t => {
    const { clock, relay, client, gate } = await ask(t, wire)
    await clock.advance(14_000)
    t.equal(pings(client.received()), 0)
    await clock.advance(2_000)
    await client.until("keep-alive")
    await clock.advance(31_000)
    gate.resolve()
    const text = await client.closed
    t.equal(pings(text), 3)
    t.match(text, "data: [DONE]")
    t.equal(await relay.spent(), goodMicros)
  })
}

t.test("a relayed stream stays silent with its vendor", async t => {
  const { clock, client, gate } = await ask(t, wires.messages)
  await clock.advance(60_000)
  gate.resolve()
  t.equal(pings(await client.closed), 0)
})
