/** Answers that are good HTTP and bad all the same: strays, errors inside a 200, the wrong form, usage in odd places. */
import t from "tap"
import { ask } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, chunked, type Handler, headOf } from "../fixtures/vendor.ts"
import * as faults from "../fixtures/vendor-faults.ts"
import { openRelay, sample, wires } from "../fixtures/wires.ts"

t.test("an answer that nobody asked for reaches no other caller", async t => {
  const stray = { body: '{"stray":true,"usage":{"input_tokens":1,"output_tokens":1}}' }
  const relay = await openRelay(t, faults.strayAnswer({ body: wires.messages.whole }, stray))
  for (let call = 0; call < 3; call += 1) {
    const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
    t.equal(answer.text, wires.messages.whole)
  }
})

t.test("bytes behind an announced length reach nobody, and their connection is not used again", async t => {
  const handler: Handler = exchange =>
    exchange.send(`${headOf({ body: wires.messages.whole })}${wires.messages.whole}tail`)
  const relay = await openRelay(t, handler)
  for (let call = 0; call < 2; call += 1) {
    const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
    t.match(answer, { status: 200, text: wires.messages.whole })
  }
  t.equal(relay.vendor.connections.accepted, 2)
})

for (const wire of [wires.messages, wires.chat]) {
  t.test(`${wire.name}: behind an answer that came before the body was read no other request waits`, async t => {
    const early: Handler = async ({ request, send, socket }) => {
      if (request.connection > 1) return
      socket.pause() // for ever
      await send(`${headOf({ status: 413, body: "{}" })}{}`)
    }
    const relay = await openRelay(t, answering({ body: wire.whole }), { vendor: { early } })
    const large = { ...wire.request(false), metadata: { note: "x".repeat(20_000_000) } }
    t.equal((await ask(relay.url + wire.path(false), large)).status, wire.relayed ? 413 : 400)
    t.equal((await ask(relay.url + wire.path(false), wire.request(false))).status, 200)
    t.equal(relay.vendor.connections.accepted, 2)
  })
}

t.test("an error without end is no more than its beginning", async t => {
  const endless: Handler = async ({ send, socket }) => {
    await send(headOf({ status: 400, headers: { "transfer-encoding": "chunked" } }))
    const piece = chunked("x".repeat(65_536))
    while (!socket.destroyed) await send(piece)
  }
  const relay = await openRelay(t, endless)
  const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
  t.equal(answer.status, 400)
  t.equal(answer.body.length, 1024 * 1024)
  await until(() => relay.vendor.connections.open === 0)
  t.equal(await relay.spent(), 0)
})

t.test(
  "an error inside a whole 200 passes on a relay, is an error where it is translated, and costs nothing",
  async t => {
    const overloaded = JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })
    const relay = await openRelay(t, answering({ body: overloaded }))
    t.match(await ask(relay.url + wires.messages.path(false), wires.messages.request(false)), {
      status: 200,
      text: overloaded,
    })
    const translated = wires["chat on messages"]
    t.equal((await ask(relay.url + translated.path(false), translated.request(false))).status, 502)
    t.equal(relay.vendor.requests.length, 3, "the translated one was tried again")
    t.equal(await relay.spent(), 0)
  },
)

t.test("a whole answer where a stream was asked for, and a stream where a whole answer was", async t => {
  const relay = await openRelay(t, answering({ body: wires.messages.whole }))
  const whole = await ask(relay.url + wires.messages.path(true), wires.messages.request(true))
  t.match(whole, { status: 200, text: wires.messages.whole })
  t.equal(await relay.spent(), 50_000, "what it reports is charged all the same")
  t.equal((await ask(relay.url + wires.chat.path(true), wires.chat.request(true))).status, 502)
  const events = wires.messages.events.join("")
  const other = await openRelay(t, answering({ body: events, headers: { "content-type": "Text/Event-Stream" } }))
  t.match(await ask(other.url + wires.messages.path(false), wires.messages.request(false)), {
    status: 200,
    text: events,
  })
  t.equal(await other.spent(), 50_000)
  const translated = wires["chat on messages"]
  t.equal((await ask(other.url + translated.path(false), translated.request(false))).status, 502)
  t.equal(await other.spent(), 50_000)
})

t.test("a stream that is refused inside a 200, in JSON, is refused: as an ordinary error, for nothing", async t => {
  const refusals: readonly [error: object, status: number, tries: number][] = [
    [{ message: "too long", type: "invalid_request_error", code: "context_length_exceeded" }, 400, 1],
    [{ message: "slow down", type: "rate_limit_error", code: "rate_limit_exceeded" }, 429, 2],
    [{ message: "bad key", type: "invalid_request_error", code: "invalid_api_key" }, 502, 1],
  ]
  for (const [error, status, tries] of refusals) {
    const relay = await openRelay(t, answering({ body: JSON.stringify({ error }) }))
    t.equal((await ask(relay.url + wires.chat.path(true), wires.chat.request(true))).status, status)
    t.equal(relay.vendor.requests.length, tries, "what may pass is tried again")
    t.equal(await relay.spent(), 0)
  }
})

t.test("usage counts wherever it stands, and only once", async t => {
  const chunk = (part: object) => `data: ${JSON.stringify({ id: "c", choices: [], ...part })}\n\n`
  const choices = (content: string, finish: string | null = null) => ({
    choices: [{ index: 0, delta: { content }, finish_reason: finish }],
  })
  const usage = { usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 } }
  const streams: Readonly<Record<string, string>> = {
    "in the chunk that ends the text": chunk(choices("a")) + chunk({ ...choices("b", "stop"), ...usage }),
    "in every chunk": chunk({ ...choices("a"), ...usage }) + chunk({ ...choices("b", "stop"), ...usage }),
    "in the first chunk": chunk({ ...choices("a"), ...usage }) + chunk(choices("b", "stop")),
    "behind the end": `${chunk(choices("a", "stop"))}data: [DONE]\n\n${chunk(usage)}`,
  }
  for (const [name, events] of Object.entries(streams)) {
    const relay = await openRelay(t, answering({ body: events, headers: { "content-type": "text/event-stream" } }))
    t.equal((await ask(relay.url + wires.chat.path(true), wires.chat.request(true))).status, 200, name)
    t.equal(await relay.spent(), 50_000, name)
  }
})

t.test("an answer without usage is charged as counted, and seen in the metric", async t => {
  for (const stream of [false, true]) {
    const whole = JSON.stringify({ type: "message", content: [{ type: "text", text: "x".repeat(35) }] })
    const delta = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x".repeat(35) } }
    const events = `event: content_block_delta\ndata: ${JSON.stringify(delta)}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`
    const headers = { "content-type": stream ? "text/event-stream" : "application/json" }
    const relay = await openRelay(t, answering({ body: stream ? events : whole, headers }))
    const { request, path } = wires.messages
    t.equal((await ask(relay.url + path(stream), request(stream))).status, 200)
    const input = Math.ceil("claudeuserhi".length / 3)
    t.equal(await relay.spent(), input * 1_000 + 10 * 2_000, stream ? "streamed" : "whole")
    t.equal(sample(await relay.metrics(), 'tollgate_usage_missing_total{vendor="anthropic",model="claude"}'), 1)
  }
})
