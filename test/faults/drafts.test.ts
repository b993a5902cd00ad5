/** What drafts of ours make of an answer: a change that the vendor would take, a translation that breaks, a head that cannot be written. */
import t from "tap"
import type { AnyPlugin } from "../../core/loader.ts"
import { ask } from "../fixtures/client.ts"
import { answering, chunked, type Handler, streamHead, streaming } from "../fixtures/vendor.ts"
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

t.test("a fallback that has no words for a request is passed by, whether its elder fails or rests", async t => {
  const wordless = (kind: "invalid_request" | "internal"): AnyPlugin => ({
    name: "wordless",
    api: 1,
    setup: host =>
      host.use({
        run: call =>
          call.exchange(({ vendor }) => {
            if (vendor !== "openai") throw host.error(kind, "no words for it")
            return { verb: "send", api: "chat", path: "/v1/chat/completions", streamed: false, body: "{}", answer }
          }),
      }),
  })
  const answer = (body: Buffer) => ({ body })
  const told = { invalid_request: 502, internal: 500 } as const
  for (const [kind, status] of Object.entries(told) as [keyof typeof told, number][]) {
    const failing = answering({ status: 503, body: "{}" })
    const relay = await openRelay(t, failing, { second: failing, plugins: [wordless(kind)] })
    for (let call = 1; call <= 6; call += 1)
      t.equal((await ask(relay.url + chat.path(false), chat.request(false))).status, status, `${kind}, call ${call}`)
    t.equal(relay.vendor.requests.length, 5, "the sixth found it at rest")
    t.equal(relay.second.requests.length, 0)
    const attempts = 'tollgate_upstream_requests_total{vendor="openai",model="gpt",outcome="overloaded"}'
    t.equal(sample(await relay.metrics(), attempts), 5)
  }
})

t.test("a first choice that has no words for a request says so, and nobody is asked", async t => {
  const relay = await openRelay(t, answering({ body: chat.whole }), {
    second: answering({ body: chat.whole }),
    plugins: [
      {
        name: "wordless",
        api: 1,
        setup: host =>
          host.use({
            run: call =>
              call.exchange(() => {
                throw host.error("invalid_request", "no words for it")
              }),
          }),
      },
    ],
  })
  t.equal((await ask(relay.url + chat.path(false), chat.request(false))).status, 400)
  t.equal(relay.vendor.requests.length + relay.second.requests.length, 0)
})

/** In place of the endpoint's own draft: the id of its answer cannot be recorded. */
const unrecorded: AnyPlugin = {
  name: "unrecorded",
  api: 1,
  setup: host =>
    host.use({
      run: call =>
        call.exchange(() => ({
          verb: "relay",
          api: "responses",
          path: "/v1/responses",
          streamed: true,
          seen: () => Promise.reject(new Error("the store is away")),
        })),
    }),
}

t.test("a stream whose id cannot be recorded goes on, and ends as broken", async t => {
  const { responses } = wires
  const relay = await openRelay(t, streaming(responses.events.join("")), { plugins: [unrecorded] })
  const answer = await ask(relay.url + responses.path(true), responses.request(true))
  t.match(answer, { status: 200, end: "whole" })
  t.match(answer.text, /Grüße.*event: error/s)
  t.equal(await relay.spent(), goodMicros)
})

t.test("who asked for the usage of a stream reads what was counted where the vendor told none", async t => {
  const events = chat.events.filter(event => !event.includes('"usage"')).join("")
  const relay = await openRelay(t, streaming(events))
  const request = { ...chat.request(true), stream_options: { include_usage: true } }
  const { text } = await ask(relay.url + chat.path(true), request)
  const [, counts = "{}"] = /"usage":(\{"prompt_tokens".*?\d\})/.exec(text) ?? []
  const { prompt_tokens, completion_tokens } = JSON.parse(counts)
  t.equal(await relay.spent(), prompt_tokens * 1_000 + completion_tokens * 2_000)
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
