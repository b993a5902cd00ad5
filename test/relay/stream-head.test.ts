/** The head of a stream waits for content, so that an error in a 200 is an ordinary error: how long, and what then. */
import t from "tap"
import { testClock } from "../../core/testing.ts"
import { ask, postHead, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { chunked, type Handler, headOf, lastChunk, streaming } from "../fixtures/vendor.ts"
import {
  allWires,
  beginning,
  beginningMicros,
  goodMicros,
  openRelay,
  relayWires,
  sample,
  type Wire,
  wires,
} from "../fixtures/wires.ts"

const streamHead = headOf({ headers: { "content-type": "text/event-stream", "transfer-encoding": "chunked" } })
const good = (wire: Wire): Handler => streaming(wire.events.join(""))

for (const wire of allWires) {
  t.test(`${wire.name}: an error as first event falls back to the second target, unseen and unpaid`, async t => {
    const relay = await openRelay(t, streaming(wire.overload.event), { second: good(wire) })
    const answer = await ask(relay.url + wire.path(true), wire.request(true))
    t.equal(answer.status, 200)
    t.notMatch(answer.text, /overload/i)
    t.match(answer.text, "世界 🎈")
    t.equal(relay.vendor.requests.length, 1)
    t.equal(relay.second.requests.length, 1)
    t.equal(await relay.spent(), goodMicros)
    const metrics = await relay.metrics()
    t.match(metrics, `tollgate_upstream_fallbacks_total{vendor="${wire.adapter}",reason="overloaded"} 1`)
  })

  t.test(
    `${wire.name}: an error after content is told in the stream, never tried again, and ends it as broken`,
    async t => {
      const events = beginning(wire) + wire.overload.event
      for (const size of [1, 7, undefined]) {
        await t.test(`in pieces of ${size ?? "all"}`, async t => {
          const relay = await openRelay(t, streaming(events, size === undefined ? {} : { size }), {
            second: good(wire),
          })
          const answer = await ask(relay.url + wire.path(true), wire.request(true))
          t.equal(answer.status, 200)
          t.match(answer.text, "Grüße", "content that came before the error is not lost")
          t.match(answer.text, /error/)
          t.equal(answer.end, "whole")
          if (wire.relayed) t.equal(answer.text, events)
          t.equal(relay.second.requests.length, 0)
          const reported = wire.adapter === "anthropic" ? 10_000 + 2_000 : 0
          t.equal(await relay.spent(), reported, "what the vendor reported before it broke")
          const metrics = await relay.metrics()
          t.match(metrics, `tollgate_streams_ended_total{vendor="${wire.adapter}",how="broken"} 1`)
          t.match(metrics, /^tollgate_errors_total\{.*error_type="vendor_overloaded"\} 1$/m)
        })
      }
    },
  )
}

for (const wire of relayWires) {
  t.test(
    `${wire.name}: without another target the event's data is the error's body, with the documented status`,
    async t => {
      const relay = await openRelay(t, streaming(wire.overload.event))
      const answer = await ask(relay.url + wire.path(true), wire.request(true))
      t.equal(answer.status, wire.overload.status)
      t.equal(answer.headers["content-type"], "application/json")
      t.same(JSON.parse(answer.text), JSON.parse(wire.overload.event.replace(/^(?:event: .*\n)?data: /, "")))
      t.equal(await relay.spent(), 0)
    },
  )
}

const ping = 'event: ping\ndata: {"type":"ping"}\n\n'

t.test("the head goes out with the eighth event that tells nothing", async t => {
  const gate = Promise.withResolvers<void>()
  const handler: Handler = async ({ send }) => {
    await send(streamHead)
    for (let sent = 0; sent < 7; sent += 1) await send(chunked(ping))
    await gate.promise
    await send(chunked(ping)) // and the stream stays open: its end would let the head out too
  }
  const relay = await openRelay(t, handler, { clock: testClock() })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wires.messages.request(true))
  client.write(postHead("/v1/gateway/vendor-a/v1/messages", [`content-length: ${body.length}`]) + body)
  await relay.vendor.next()
  for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve))
  t.equal(client.received(), "")
  gate.resolve()
  t.match(await client.until("ping"), /^HTTP\/1\.1 200 /)
})

t.test("the head goes out when 64 KB told nothing", async t => {
  const comment = `: ${"x".repeat(1021)}\n`
  const handler: Handler = async ({ send }) => {
    await send(streamHead)
    for (let sent = 0; sent < 66; sent += 1) await send(chunked(comment))
  }
  const relay = await openRelay(t, handler, { clock: testClock() })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wires.messages.request(true))
  client.write(postHead("/v1/gateway/vendor-a/v1/messages", [`content-length: ${body.length}`]) + body)
  t.match(await client.until("xxx"), /^HTTP\/1\.1 200 /)
})

t.test("the head goes out when ten seconds told nothing, by the clock", async t => {
  const clock = testClock()
  const relay = await openRelay(t, ({ send }) => send(streamHead + chunked(ping).toString()), { clock })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wires.messages.request(true))
  client.write(postHead("/v1/gateway/vendor-a/v1/messages", [`content-length: ${body.length}`]) + body)
  await relay.vendor.next()
  await until(async () => (await relay.metrics()).includes("tollgate_requests_in_flight 1"))
  for (let turn = 0; turn < 20; turn += 1) await new Promise(resolve => setImmediate(resolve))
  await clock.advance(9_800)
  t.equal(client.received(), "")
  await clock.advance(400)
  t.match(await client.until("ping"), /^HTTP\/1\.1 200 /)
})

t.test("the first token is the first content, however long before it the head went out", async t => {
  const clock = testClock()
  const gate = Promise.withResolvers<void>()
  const handler: Handler = async ({ send }) => {
    await send(streamHead + chunked(ping))
    await gate.promise
    await send(chunked(wires.messages.events.join("")) + lastChunk)
  }
  const relay = await openRelay(t, handler, { clock })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(wires.messages.request(true))
  client.write(postHead("/v1/gateway/vendor-a/v1/messages", [`content-length: ${body.length}`]) + body)
  await until(async () => {
    await clock.advance(1_000)
    return client.received().includes("ping")
  })
  const count = 'tollgate_stream_first_token_seconds_count{vendor="anthropic",model="claude"}'
  t.equal(sample(await relay.metrics(), count), 0)
  gate.resolve()
  await client.until("message_stop")
  t.equal(sample(await relay.metrics(), count), 1)
})

t.test("streams that break off after content rest their model, on native routes too", async t => {
  const wire = wires.messages
  const relay = await openRelay(t, streaming(beginning(wire) + wire.overload.event))
  for (let call = 0; call < 5; call += 1)
    t.equal((await ask(relay.url + wire.path(true), wire.request(true))).status, 200)
  t.equal((await ask(relay.url + wire.path(true), wire.request(true))).status, 502)
  t.equal(relay.vendor.requests.length, 5)
})

t.test("an error after a head that went out for want of news costs nothing, whatever was reported by then", async t => {
  const [start = ""] = wires.messages.events
  for (const wire of [wires.messages, wires["chat on messages"]]) {
    const clock = testClock()
    const gate = Promise.withResolvers<void>()
    const handler: Handler = async ({ send }) => {
      await send(streamHead + chunked(start))
      await gate.promise
      await send(chunked(wire.overload.event) + lastChunk)
    }
    const relay = await openRelay(t, handler, { clock })
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify(wire.request(true))
    client.write(postHead(`/v1/gateway${wire.path(true)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
    await until(async () => {
      await clock.advance(1_000)
      return client.received().includes("\r\n\r\n")
    })
    gate.resolve()
    await client.until("overload")
    t.equal(await relay.spent(), 0, wire.name)
  }
})

t.test("a first try whose stream died before content leaves nothing that writes a second head later", async t => {
  const clock = testClock()
  const died: Handler = async ({ send, reset }) => {
    await send(streamHead + chunked(ping))
    reset()
  }
  const gate = Promise.withResolvers<void>()
  const slow: Handler = async ({ send }) => {
    await send(streamHead + chunked(wires.messages.events.slice(0, 3).join("")))
    await gate.promise
    await send(chunked(wires.messages.events.slice(3).join("")) + lastChunk)
  }
  const relay = await openRelay(t, died, { second: slow, clock })
  const answer = ask(relay.url + wires.messages.path(true), wires.messages.request(true))
  await relay.second.next()
  await until(async () => (await relay.metrics()).includes("tollgate_stream_first_token_seconds_count"))
  await clock.advance(11_000)
  gate.resolve()
  t.match(await answer, { status: 200, end: "whole", text: wires.messages.events.join("") })
  t.equal(await relay.spent(), goodMicros)
})

t.test("a stream that ends before any content passes as it is", async t => {
  const relay = await openRelay(t, streaming(ping))
  t.match(await ask(relay.url + wires.messages.path(true), wires.messages.request(true)), {
    status: 200,
    text: ping,
    end: "whole",
  })
  t.equal(await relay.spent(), 0)
})

t.test("a head that goes out for want of news goes out at once, also where nothing can follow it yet", async t => {
  const clock = testClock()
  const half = 'event: message_start\ndata: {"type":"message_start",'
  for (const [wire, first] of [
    [wires.messages, half],
    [wires["chat on messages"], half],
    [wires["chat on messages"], "event: ping\ndata: {}\n\n"],
  ] as const) {
    const gate = Promise.withResolvers<void>()
    const relay = await openRelay(
      t,
      async ({ send, socket }) => {
        await send(streamHead + chunked(first))
        await gate.promise
        socket.resetAndDestroy()
      },
      { clock },
    )
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify(wire.request(true))
    client.write(postHead(`/v1/gateway${wire.path(true)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
    await until(() => relay.vendor.requests.length === 1)
    await clock.advance(10_500)
    t.match(await client.until("\r\n\r\n"), /^HTTP\/1\.1 200 /, wire.name)
    gate.resolve()
    await client.until("error")
  }
})

t.test("a stream that is cut after content ends with an error of the route's own shape", async t => {
  for (const wire of allWires) {
    const handler: Handler = async ({ send, socket }) => {
      await send(streamHead + chunked(beginning(wire)))
      socket.resetAndDestroy()
    }
    const relay = await openRelay(t, handler, { second: good(wire) })
    const answer = await ask(relay.url + wire.path(true), wire.request(true))
    t.equal(answer.end, "whole", wire.name)
    t.match(answer.text, "Grüße", wire.name)
    const last = answer.text
      .trimEnd()
      .split(/\r?\n\r?\n/)
      .at(-1)!
    const told = JSON.parse(last.replace(/^(?:event: .*\n)?data: /, ""))
    t.match(told, { error: { message: String } }, wire.name)
    t.equal(/^event: error/.test(last), wire.name === "messages" || wire.name === "responses", wire.name)
    t.equal(relay.second.requests.length, 0, wire.name)
    t.equal(await relay.spent(), beginningMicros(wire), wire.name)
    t.match(await relay.metrics(), `tollgate_streams_ended_total{vendor="${wire.adapter}",how="broken"} 1`)
  }
})
