/** One event without end: relayed as it comes, read by nobody, counted once, and no memory kept of it. */

import { request } from "node:http"
import t from "tap"
import { testKey } from "../../core/testing.ts"
import { keptBytes } from "../fixtures/kept.ts"
import { chunked, type Handler, headOf, lastChunk } from "../fixtures/vendor.ts"
import { openRelay, sample, wires } from "../fixtures/wires.ts"

const megabyte = 1024 * 1024
const total = 512 * megabyte

/** Bytes of the answer's body; it is thrown away as it comes. */
const drained = (url: string, body: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${testKey}`, "user-agent": "test", "content-type": "application/json" }
    const sent = request(url, { method: "POST", headers, agent: false }, answer => {
      let bytes = 0
      answer.on("data", chunk => (bytes += chunk.length))
      answer.on("end", () => resolve(bytes))
      answer.on("error", reject)
    })
    sent.on("error", reject)
    sent.end(body)
  })

t.test("512 MB in one event", async t => {
  const content = Buffer.alloc(megabyte, "x")
  const piece = chunked(content)
  const first = Buffer.from('data: {"text":"')
  let highest = 0
  const handler: Handler = async ({ send }) => {
    await send(headOf({ headers: { "content-type": "text/event-stream", "transfer-encoding": "chunked" } }))
    await send(chunked(first))
    for (let sent = 0; sent < total; sent += megabyte) {
      await send(piece)
      if (sent % (64 * megabyte) === 0) highest = Math.max(highest, keptBytes())
    }
    await send(lastChunk)
  }
  const relay = await openRelay(t, handler)
  const before = keptBytes()
  const bytes = await drained(relay.url + wires.messages.path(true), JSON.stringify(wires.messages.request(true)))
  t.equal(bytes, total + first.length)
  // Vendor, gateway and client share this process: what all three keep stays far below one event.
  t.ok(highest - before < 64 * megabyte, `memory grew by ${Math.round((highest - before) / megabyte)} MB`)
  t.equal(sample(await relay.metrics(), 'tollgate_watch_overflow_total{vendor="anthropic",kind="event"}'), 1)
  t.equal(await relay.spent(), 4_000, "what was delivered and could not be read costs its estimated input")
})
