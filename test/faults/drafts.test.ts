/** What drafts of ours make of an answer: a change that the vendor would take, a translation that breaks, a head that cannot be written. */
import t from "tap"
import type { AnyPlugin } from "../../core/loader.ts"
import { ask } from "../fixtures/client.ts"
import { answering, chunked, type Handler, streamHead } from "../fixtures/vendor.ts"
import { inTurn } from "../fixtures/vendor-faults.ts"
import { beginning, beginningMicros, goodMicros, openRelay, sample, wires } from "../fixtures/wires.ts"

const { chat, messages } = wires
const translated = wires["chat on messages"]

t.test("effort beside tools is left out where the vendor refuses the request for it, and nowhere else", async t => {
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }]
  const message = "reasoning_effort is not served with tools"
  const efforts = { 400: ["low", undefined], 404: ["low"], 413: ["low"], 503: ["low", "low"] }
  for (const [status, expected] of Object.entries(efforts)) {
    const refused = answering({ status: Number(status), body: JSON.stringify({ error: { message } }) })
    const relay = await openRelay(t, inTurn(refused, answering({ body: chat.whole })))
    const request = { ...chat.request(false), tools, reasoning_effort: "low" }
    t.equal((await ask(relay.url + chat.path(false), request)).status, expected.length === 1 ? 400 : 200, status)
    const sent = relay.vendor.requests.map(({ body }) => JSON.parse(body.toString()).reasoning_effort)
    t.same(sent, expected, status)
    t.equal(await relay.spent(), expected.length === 1 ? 0 : goodMicros)
  }
})

t.test("text that came in one piece with what cannot be translated reaches the client, and is paid", async t => {
  const spoilt = "event: content_block_delta\ndata: {nonsense\n\n"
  const first = beginning(translated)
  const more = translated.events.find(event => event.includes("世界"))!
  for (const pieces of [[first + spoilt], [first, more + spoilt]]) {
    const handler: Handler = async ({ send }) => {
      await send(streamHead)
      for (const piece of pieces) await send(chunked(piece))
    }
    const relay = await openRelay(t, handler, { second: handler })
    const answer = await ask(relay.url + translated.path(true), translated.request(true))
    t.match(answer, { status: 200, end: "whole" })
    t.match(answer.text, pieces.length === 1 ? /Grüße.*"error"/s : /Grüße.*世界.*"error"/s)
    t.notMatch(answer.text, "[DONE]")
    t.equal(await relay.spent(), beginningMicros(translated))
    t.equal(relay.vendor.requests.length + relay.second.requests.length, 1)
  }
})

/** In place of the endpoint's own draft: its answer has a field that no head can carry. */
const unwritable: AnyPlugin = {
  name: "unwritable",
  api: 1,
  setup: host =>
    host.use({
      run: call =>
        call.exchange(() => ({
          verb: "send",
          api: "messages",
          path: "/v1/messages",
          streamed: false,
          body: "{}",
          answer: body => ({ body, headers: { "x-note": "世界" } }),
        })),
    }),
}

t.test("a whole answer that is billed and cannot be written ends its connection: nobody waits for it", async t => {
  const relay = await openRelay(t, answering({ body: messages.whole }), { plugins: [unwritable] })
  await t.rejects(ask(relay.url + messages.path(false), messages.request(false)), { code: "ECONNRESET" })
  t.equal(await relay.spent(), goodMicros)
  t.match(
    relay.lines.find(({ msg }) => msg === "call"),
    { outcome: "broken", micros: goodMicros },
  )
  const path = "/vendor-a/v1/messages/"
  t.equal(
    sample(await relay.metrics(), `tollgate_errors_total{route="${path}",error_type="gateway_internal"}`),
    1,
    "the vendor is not blamed",
  )
})
