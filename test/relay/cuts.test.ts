/** A relayed stream that dies within an event: what its client got are whole events, and then the error as one more. */
import t from "tap"
import { ask } from "../fixtures/client.ts"
import { chunked, type Handler, headOf, lastChunk, streamHead } from "../fixtures/vendor.ts"
import { allWires, beginning, openRelay, type Wire, wires } from "../fixtures/wires.ts"

const dying =
  (head: string, pieces: readonly (string | Uint8Array)[]): Handler =>
  async ({ send, socket }) => {
    await send(head)
    for (const piece of pieces) await send(chunked(piece))
    socket.resetAndDestroy()
  }

/** What an SDK would parse. */
const dataOf = (text: string): readonly string[] =>
  text
    .split(/\r?\n\r?\n/)
    .flatMap(event => event.split(/\r?\n/).flatMap(line => (line.startsWith("data: ") ? [line.slice(6)] : [])))

const nextEvent = (wire: Wire): string => {
  const rest = wire.events.join("").slice(beginning(wire).length)
  return rest.slice(0, rest.search(/\r?\n\r?\n/))
}

for (const wire of allWires) {
  t.test(`${wire.name}: cut anywhere within an event`, async t => {
    const event = Buffer.from(nextEvent(wire))
    for (const at of [1, 5, 9, Math.floor(event.length / 2), event.length - 1]) {
      const relay = await openRelay(t, dying(streamHead, [beginning(wire), event.subarray(0, at)]))
      const answer = await ask(relay.url + wire.path(true), wire.request(true))
      t.equal(answer.end, "whole")
      const data = dataOf(answer.text)
      for (const one of data) t.doesNotThrow(() => JSON.parse(one), one)
      t.match(JSON.parse(data.at(-1)!), { error: { message: String } })
      if (wire.relayed) t.ok(answer.text.startsWith(beginning(wire)), "what came before is untouched")
    }
  })
}

const arrayHead = headOf({ headers: { "content-type": "application/json", "transfer-encoding": "chunked" } })
const arrayPath = wires.generate.path(true).replace("?alt=sse", "")
const elements = wires.generate.events.map(event => event.replace(/^data: /, "").trim())

t.test("an array that is cut within an element is closed as JSON, its last element the error", async t => {
  const [first = "", second = ""] = elements
  for (const pieces of [
    [`[${first}`],
    [`[${first}\n,\n`],
    [`[${first},\r\n`, second.slice(0, 20)],
    [`[${first},${second}`],
    [`[${first}]\n`],
  ]) {
    const relay = await openRelay(t, dying(arrayHead, pieces))
    const answer = await ask(relay.url + arrayPath, wires.generate.request(true))
    t.equal(answer.status, 200)
    const parsed = JSON.parse(answer.text) as readonly { readonly error?: object }[]
    t.match(parsed.at(-1), { error: { message: String } })
    t.same(parsed[0], JSON.parse(first))
  }
})

t.test("an array passes byte for byte, whatever its pieces are", async t => {
  const text = `[${elements.join("\n,\r\n")}\n]\n`
  for (const size of [1, 3, 64, text.length]) {
    const bytes = Buffer.from(text)
    const handler: Handler = async ({ send }) => {
      await send(arrayHead)
      for (let at = 0; at < bytes.length; at += size) await send(chunked(bytes.subarray(at, at + size)))
      await send(lastChunk)
    }
    const relay = await openRelay(t, handler)
    t.equal((await ask(relay.url + arrayPath, wires.generate.request(true))).text, text)
  }
})

t.test("half an event that is too large to wait is passed on, and the error is an event of its own", async t => {
  const large = `data: {"type":"content_block_delta","text":"${"x".repeat(400_000)}`
  const relay = await openRelay(t, async ({ send, end }) => {
    await send(streamHead + chunked(beginning(wires.messages)) + chunked(large))
    end()
  })
  const answer = await ask(relay.url + wires.messages.path(true), wires.messages.request(true))
  t.ok(answer.text.includes(large))
  t.match(JSON.parse(dataOf(answer.text).at(-1)!), { error: { message: String } })
})
