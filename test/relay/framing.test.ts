/** Streamed answers on the wire of the client: chunks that any parser takes, on connections that are used again. */
import { once } from "node:events"
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http"
import { text } from "node:stream/consumers"
import t, { type Test } from "tap"
import { testKey } from "../../core/testing.ts"
import { postHead, rawClient } from "../fixtures/client.ts"
import { untilStill } from "../fixtures/until.ts"
import { chunked, type Handler, lastChunk, streamHead, streaming } from "../fixtures/vendor.ts"
import { goodMicros, openRelay, relayWires, wires } from "../fixtures/wires.ts"

const { messages, chat } = wires
const events = messages.events.join("")

/** An answer whose chunks node's own parser takes, and the request that it came for. */
const answerOn = (
  agent: Agent,
  url: string,
  body: unknown,
): Promise<{ sent: ClientRequest; answer: IncomingMessage }> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${testKey}`, "content-type": "application/json", "user-agent": "test" }
    const sent = request(url, { agent, method: "POST", headers }, answer => resolve({ sent, answer }))
    sent.on("error", reject)
    sent.end(JSON.stringify(body))
  })

const askOn = async (agent: Agent, url: string, body: unknown): Promise<{ text: string; reused: boolean }> => {
  const { sent, answer } = await answerOn(agent, url, body)
  return { text: await text(answer), reused: sent.reusedSocket }
}

const oneConnection = (t: Test): Agent => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return agent
}

t.test("streams follow one another on one connection, relayed and translated", async t => {
  const agent = oneConnection(t)
  const relay = await openRelay(t, exchange => {
    const wire = exchange.request.target.includes("messages") ? messages : chat
    return streaming(wire.events.join(""), { size: 11 })(exchange)
  })
  for (const [at, wire] of [messages, chat, messages, chat].entries()) {
    const { text: told, reused } = await askOn(agent, relay.url + wire.path(true), wire.request(true))
    if (wire === messages) t.equal(told, events)
    else t.match(told, /世界 🎈.*\[DONE\]/s)
    t.equal(reused, at > 0)
  }
})

t.test("HTTP/1.0 knows no chunks: the bytes as they are, to the end of the connection", async t => {
  for (const wire of relayWires) {
    const relay = await openRelay(t, streaming(wire.events.join(""), { size: 7 }))
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify(wire.request(true))
    const path = new URL(relay.url + wire.path(true))
    const lines = postHead(path.pathname + path.search, [`content-length: ${Buffer.byteLength(body)}`])
    client.write(lines.replace("HTTP/1.1", "HTTP/1.0") + body)
    const answer = Buffer.from(await client.closed, "latin1").toString()
    t.equal(answer.slice(answer.indexOf("\r\n\r\n") + 4), wire.events.join(""), wire.name)
    t.equal(await relay.spent(), goodMicros)
  }
})

t.test("a client that stops reading small events pauses the vendor, and gets every byte when it reads on", async t => {
  const event = `data: {"type":"content_block_delta","delta":{"text":"${"x".repeat(900)}"}}\n\n`
  const total = 40_000
  let sent = 0
  const handler: Handler = async ({ send, socket }) => {
    await send(streamHead)
    while (!socket.destroyed && sent < total) {
      await send(chunked(event))
      sent += 1
    }
    await send(lastChunk)
  }
  const relay = await openRelay(t, handler)
  const { answer } = await answerOn(oneConnection(t), relay.url + messages.path(true), messages.request(true))
  await once(answer, "readable") // nobody reads on
  await untilStill(() => sent)
  t.ok(sent < total, `the vendor was stopped after ${sent} of ${total} events`)
  t.ok((await text(answer)) === event.repeat(total), "every byte, once and in order")
})
