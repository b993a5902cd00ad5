/** What reached the client is paid, also where nobody could read or count it. */
import t, { type Test } from "tap"
import { testClock } from "../../core/testing.ts"
import { ask, postHead, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, chunked, type Handler, headOf, lastChunk, streamHead, streaming } from "../fixtures/vendor.ts"
import { goodMicros, openRelay, type Relay, sample, type Wire, wires } from "../fixtures/wires.ts"

const { messages, responses, generate, chat } = wires

/** The estimate of each request: the text that it holds at three bytes a token, 1,000 micros each. */
const texts: Readonly<Record<string, string>> = {
  messages: "claudeuserhi",
  generate: "userhi",
  responses: "gpthi",
  chat: "gptuserhi",
}
const inputMicros = ({ name }: Wire): number => Math.ceil(texts[name]!.length / 3) * 1_000

const spentOn = async (t: Test, wire: Wire, stream: boolean, handler: Handler): Promise<number> => {
  const relay = await openRelay(t, handler)
  const answer = await ask(relay.url + wire.path(stream), wire.request(stream))
  t.equal(answer.status, 200)
  return relay.spent()
}

t.test("a whole answer that is no JSON costs its estimated input; one behind a byte order mark its usage", async t => {
  for (const wire of [messages, responses, generate]) {
    t.equal(await spentOn(t, wire, false, answering({ body: "protobuf" })), inputMicros(wire), wire.name)
    t.equal(await spentOn(t, wire, false, answering({ body: `\uFEFF${wire.whole}` })), goodMicros, wire.name)
  }
})

t.test("an answer in which nothing stands costs nothing", async t => {
  const json = { "content-type": "application/json" }
  for (const wire of [messages, responses, generate]) {
    for (const body of ["", "\n\n\n"]) t.equal(await spentOn(t, wire, false, answering({ body })), 0, wire.name)
    const empty = answering({ body: "", headers: { "content-encoding": "zstd" } })
    t.equal(await spentOn(t, wire, false, empty), 0, `${wire.name}, said to be coded`)
    const alive = ": keep-alive\n\nid: 1\nretry: 5\n\n:\n\n"
    for (const body of ["", alive, "\uFEFF\n"]) t.equal(await spentOn(t, wire, true, streaming(body)), 0, wire.name)
    for (const body of ["", "[]", "\n[\n]"]) t.equal(await spentOn(t, wire, true, streaming(body, {}, json)), 0)
  }
  const ping = 'event: ping\ndata: {"type":"ping"}\n\n'
  t.equal(await spentOn(t, messages, true, streaming(`${ping}unknown: 1\n\n`)), 0, "a field that nobody knows")
})

t.test("a stream in no form of one costs its estimated input", async t => {
  for (const type of ["text/event-stream", "application/json"]) {
    const handler = streaming("protobuf\n\n", {}, { "content-type": type })
    t.equal(await spentOn(t, messages, true, handler), inputMicros(messages), type)
  }
})

t.test("a stream under another name is metered as the stream that was asked for", async t => {
  for (const type of ["text/plain", "application/octet-stream"]) {
    const handler = streaming(messages.events.join(""), {}, { "content-type": type })
    t.equal(await spentOn(t, messages, true, handler), goodMicros)
  }
})

t.test("an answer in a coding that nobody here knows costs its estimated input", async t => {
  const headers = { "content-encoding": "compress" }
  const relay = await openRelay(t, answering({ headers, body: messages.whole }))
  const options = { headers: { "accept-encoding": "compress" } }
  t.equal((await ask(relay.url + messages.path(false), messages.request(false), options)).text, messages.whole)
  t.equal(await relay.spent(), inputMicros(messages))
})

t.test("the usage of a finished image is read, however large its event is", async t => {
  const image = { type: "image_generation_call", id: "ig", status: "completed", result: "A".repeat(6_000_000) }
  const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30 }
  const event = `event: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response: { output: [image], usage } })}\n\n`
  const handler = streaming([...responses.events.slice(0, -1), event].join(""), { size: 65_536 })
  t.equal(await spentOn(t, responses, true, handler), goodMicros)
})

t.test("an event that is too large to be translated breaks the stream, and is not passed over", async t => {
  const text = "x".repeat(40 * 1024 * 1024)
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`
  const handler = streaming([...chat.events.slice(0, 2), event, ...chat.events.slice(2)].join(""), { size: 1_048_576 })
  const relay = await openRelay(t, handler)
  const answer = await ask(relay.url + chat.path(true), chat.request(true))
  t.match(answer.text, "Grüße")
  t.match(answer.text, /"error"/)
  t.notMatch(answer.text, /\[DONE\]/)
})

t.test("a side of the usage that is missing or nonsense is estimated or counted", async t => {
  const answered = (usage: object): Handler => answering({ body: JSON.stringify({ ...JSON.parse(chat.whole), usage }) })
  const output = Math.ceil(Buffer.byteLength("Grüße 世界") / 3.5) * 2_000
  t.equal(
    await spentOn(t, chat, false, answered({ completion_tokens: 20, total_tokens: 1_020 })),
    inputMicros(chat) + 40_000,
  )
  t.equal(
    await spentOn(t, chat, false, answered({ prompt_tokens: -5, completion_tokens: 20 })),
    inputMicros(chat) + 40_000,
  )
  t.equal(await spentOn(t, chat, false, answered({ prompt_tokens: 10, completion_tokens: 1e308 })), 10_000 + output)
})

t.test("counts from before the answer are not taken for those of its end", async t => {
  const events = messages.events.filter(event => !event.startsWith("event: message_delta"))
  const output = Math.ceil(Buffer.byteLength("Grüße 世界 🎈") / 3.5) * 2_000
  t.equal(await spentOn(t, messages, true, streaming(events.join(""))), 10_000 + output)
})

t.test("an error that comes before any content costs nothing, also when the head went out before it", async t => {
  const clock = testClock()
  for (const wire of [messages, wires["chat on messages"]]) {
    const gate = Promise.withResolvers<void>()
    const handler: Handler = async ({ send }) => {
      await send(streamHead + chunked(messages.events[0]!))
      await gate.promise
      await send(chunked(messages.overload.event) + lastChunk)
    }
    const relay = await openRelay(t, handler, { clock })
    const asked = ask(relay.url + wire.path(true), wire.request(true))
    await until(() => relay.vendor.requests.length === 1)
    await clock.advance(10_500)
    gate.resolve()
    const answer = await asked
    t.equal(answer.status, 200)
    t.match(answer.text, /overload/i)
    t.equal(await relay.spent(), 0, wire.name)
    t.match(await relay.metrics(), `tollgate_streams_ended_total{vendor="anthropic",how="broken"} 1`)
  }
})

/** The first text, then silence. */
const silent: Handler = async ({ send }) => {
  await send(streamHead + chunked(chat.events.slice(0, 2).join("")))
}
const firstText = Math.ceil(Buffer.byteLength("Grüße") / 3.5) * 2_000

t.test("a stream that we end for its length is paid as far as it came; the vendor is not blamed", async t => {
  const clock = testClock()
  const timeouts = { idle: "2h", total_stream: "1h" }
  const relay = await openRelay(t, silent, { clock, settings: { timeouts } })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(chat.request(true))
  client.write(postHead(`/v1/gateway${chat.path(true)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
  await client.until("Gr")
  await clock.advance(3_600_500)
  await client.until("error")
  t.equal(await relay.spent(), inputMicros(chat) + firstText)
  t.equal(sample(await relay.metrics(), `tollgate_upstream_breaker_state{vendor="openai",secret="main"}`), 0)
})

const leave = async (t: Test, relay: Relay, more: object = {}): Promise<void> => {
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify({ ...chat.request(true), ...more })
  client.write(postHead(`/v1/gateway${chat.path(true)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
  await client.until("Gr")
  client.socket.destroy()
  await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
}

t.test("a vendor that dies after the client left takes nothing of the bill", async t => {
  const gate = Promise.withResolvers<void>()
  const relay = await openRelay(t, async ({ send, socket }) => {
    await send(streamHead + chunked(chat.events.slice(0, 2).join("")))
    await gate.promise
    socket.resetAndDestroy()
  })
  await leave(t, relay)
  gate.resolve()
  t.equal(await relay.spent(), inputMicros(chat) + firstText)
})

t.test("a whole answer that is too large to be read on for a client that left costs its estimated input", async t => {
  const relay = await openRelay(t, async ({ send, socket }) => {
    await send(headOf({ headers: { "content-length": "30000000" } }))
    for (let sent = 0; sent < 30 && !socket.destroyed; sent += 1) await send(Buffer.alloc(1_000_000, "x"))
  })
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(messages.request(false))
  client.write(postHead(`/v1/gateway${messages.path(false)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
  await client.until("xxxx")
  client.socket.destroy()
  t.equal(await relay.spent(), inputMicros(messages))
})

t.test(
  "half a first event that was passed on for its size costs its estimated input when its client leaves",
  async t => {
    const half = `data: {"type":"content_block_delta","text":"${"x".repeat(300_000)}`
    const relay = await openRelay(t, ({ send }) => send(Buffer.concat([Buffer.from(streamHead), chunked(half)])), {
      settings: { on_client_abort: "cancel" },
    })
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify(messages.request(true))
    client.write(postHead(`/v1/gateway${messages.path(true)}`, [`content-length: ${Buffer.byteLength(body)}`]) + body)
    await client.until("xxxx")
    client.socket.destroy()
    t.equal(await relay.spent(), inputMicros(messages))
  },
)

t.test("a prompt that stands in keys or numbers is held and paid like one in words", async t => {
  const numbers = Array.from({ length: 10_000 }, (_, at) => 10_000 + at)
  for (const properties of [{ ["many words ".repeat(5_000)]: {} }, { n: { enum: numbers } }]) {
    const relay = await openRelay(t, silent, { settings: { on_client_abort: "cancel" } })
    await leave(t, relay, { tools: [{ type: "function", function: { name: "f", parameters: { properties } } }] })
    const spent = await relay.spent()
    t.ok(spent > 16_000_000, `some 17,000 tokens cost ${spent} micros`)
  }
})
