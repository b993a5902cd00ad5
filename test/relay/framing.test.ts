/** Streamed answers on the wire of the client: chunks that any parser takes, on connections that are used again. */
import { Agent, request } from "node:http"
import t from "tap"
import { testKey } from "../../core/testing.ts"
import { postHead, rawClient } from "../fixtures/client.ts"
import { untilStill } from "../fixtures/until.ts"
import { chunked, type Handler, lastChunk, streamHead, streaming } from "../fixtures/vendor.ts"
import { goodMicros, openRelay, relayWires, wires } from "../fixtures/wires.ts"

const { messages, chat } = wires
const events = messages.events.join("")

/** Chunks through node's own parser, and whether the connection was a used one. */
const askOn = (agent: Agent, url: string, body: unknown): Promise<{ text: string; reused: boolean }> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${testKey}`, "content-type": "application/json", "user-agent": "test" }
    const sent = request(url, { agent, method: "POST", headers }, answer => {
      const chunks: Buffer[] = []
      answer.on("data", chunk => chunks.push(chunk))
      answer.on("end", () => resolve({ text: Buffer.concat(chunks).toString(), reused: sent.reusedSocket }))
      answer.on("error", reject)
    })
    sent.on("error", reject)
    sent.end(JSON.stringify(body))
  })

t.test("streams follow one another on one connection, relayed and translated", async t => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const relay = await openRelay(t, exchange => {
    const wire = exchange.request.target.includes("messages") ? messages : chat
    return streaming(wire.events.join(""), { size: 11 })(exchange)
  })
  for (const [at, wire] of [messages, chat, messages, chat].entries()) {
    const { text, reused } = await askOn(agent, relay.url + wire.path(true), wire.request(true))
    if (wire === messages) t.equal(text, events)
    else t.match(text, /世界 🎈.*\[DONE\]/s)
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
  const client = await rawClient(t, relay.url)
  const body = JSON.stringify(messages.request(true))
  client.write(
    postHead(new URL(relay.url + messages.path(true)).pathname, [
      "connection: close",
      `content-length: ${body.length}`,
    ]) + body,
  )
  await client.until("xxx")
  client.socket.pause()
  await untilStill(() => sent)
  t.ok(sent < total, `the vendor was stopped after ${sent} of ${total} events`)
  client.socket.resume()
  const text = await client.closed
  t.equal(text.split("content_block_delta").length - 1, total)
  t.ok(text.endsWith(lastChunk))
})
