/** Relayed bytes are the client's and the vendor's own, in both directions, however they are cut. */
import t from "tap"
import type { AnyPlugin } from "../../core/loader.ts"
import type { Watcher } from "../../core/plugin.ts"
import { ask, postHead, rawClient, sha256 } from "../fixtures/client.ts"
import { answering, chunked, lastChunk, streaming } from "../fixtures/vendor.ts"
import { allWires, goodMicros, openRelay, relayWires, type Wire, wires } from "../fixtures/wires.ts"

const oddities: Readonly<Record<string, string>> = {
  "odd key order and spacing": '\n "zeta" :\t1 ,"alpha":[ 1 ,2 ]',
  "numbers that a parser would rewrite": '"a":1.0,"b":1e400,"c":-0,"d":0.10e-2,"e":12345678901234567890',
  "repeated keys that nobody reads": '"extra":1,"extra":{"extra":2},"extra":3',
  "escapes that a parser would resolve": '"a":"\\u0000\\u00e9\\/\\ud83c\\udf88\\ud800","\\u0061b":"\\u0022"',
  "a cache mark and a signed thought":
    '"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],' +
    '"thoughts":[{"type":"thinking","thinking":"hm…","signature":"EqQBCgIYAhIkMDAw+/=="}]',
  "keys that are the model's at another depth": '"inner":{"model":"claude","model":"gpt"},"models":"claude"',
}

/** The request of a wire as bytes, with something odd in front of the rest and blanks behind it. */
const oddRequest = (wire: Wire, odd: string): string => {
  const [, ...rest] = JSON.stringify(wire.request(false)).replace(/"model":"(\w+)"/, '"model" : "$1"')
  return `{${odd},${rest.join("")}  \r\n `
}

/** Only the bytes of the model's value may differ. */
const expected = (wire: Wire, body: string): string =>
  wire.name === "generate" ? body : body.replace(/"model" : "\w+"/, '"model" : "vendor-model"')

for (const wire of relayWires) {
  t.test(`${wire.name}: a request's bytes reach the vendor, but for the model's name`, async t => {
    const relay = await openRelay(t, answering({ body: wire.whole }))
    for (const [name, odd] of Object.entries(oddities)) {
      const body = oddRequest(wire, odd)
      const answer = await ask(relay.url + wire.path(false), body)
      t.equal(answer.status, 200, `${name}: ${answer.status === 200 ? "" : answer.text}`)
      const sent = await relay.vendor.next()
      t.equal(sent.body.toString(), expected(wire, body), name)
      t.equal(sent.headers["content-length"], String(sent.body.length), name)
    }
    t.equal(await relay.spent(), goodMicros * Object.keys(oddities).length)
  })

  t.test(`${wire.name}: 18 MB of base64 pass whole, with and without a declared length`, async t => {
    const relay = await openRelay(t, answering({ body: wire.whole }))
    const image = Buffer.alloc(18 * 1024 * 1024, "image ")
      .toString("base64")
      .slice(0, 24 * 1024 * 1024)
    const body = oddRequest(wire, `"picture":"${image}"`)
    t.equal((await ask(relay.url + wire.path(false), body)).status, 200)
    t.equal((await relay.vendor.next()).sha256, sha256(expected(wire, body)))
    const client = await rawClient(t, relay.url)
    client.write(postHead(`/v1/gateway${wire.path(false)}`, ["transfer-encoding: chunked", "connection: close"]))
    for (let at = 0; at < body.length; at += 1_000_003) client.write(chunked(body.slice(at, at + 1_000_003)))
    client.write(lastChunk)
    t.match(await client.closed, /^HTTP\/1\.1 200 /)
    t.equal((await relay.vendor.next()).sha256, sha256(expected(wire, body)))
  })

  t.test(`${wire.name}: an answer's bytes reach the client, whole and streamed, in pieces of any size`, async t => {
    const odd = wire.whole.replace("{", '{ "odd" : 1.0, "esc":"\\u00e9\\/",\n"odd":1e400,').concat(" \n")
    const events = wire.events.join("")
    for (const size of [1, 7, undefined]) {
      const cut = size === undefined ? {} : { size }
      const whole = await openRelay(t, answering({ body: odd }, cut))
      const told = await ask(whole.url + wire.path(false), wire.request(false))
      t.equal(sha256(told.body), sha256(odd), `whole in pieces of ${size ?? "all"}`)
      t.equal(told.headers["content-length"], String(Buffer.byteLength(odd)))
      t.equal(told.headers["x-credits-charged"], "0.05")
      t.equal(await whole.spent(), goodMicros)
      const streamed = await openRelay(t, streaming(events, cut))
      const heard = await ask(streamed.url + wire.path(true), wire.request(true))
      t.equal(sha256(heard.body), sha256(events), `streamed in pieces of ${size ?? "all"}`)
      t.equal(await streamed.spent(), goodMicros)
    }
  })
}

t.test("a model's name that is spelled with escapes is replaced where it stands, its key stays", async t => {
  const relay = await openRelay(t, answering({ body: wires.messages.whole }))
  const body = '{"max_tokens":1,"mod\\u0065l":"cl\\u0061ude","messages":[]}'
  t.equal((await ask(relay.url + wires.messages.path(false), body)).status, 200)
  t.equal((await relay.vendor.next()).body.toString(), body.replace('"cl\\u0061ude"', '"vendor-model"'))
})

t.test("a stream that is cut in two at any byte is relayed, translated and metered as one piece", async t => {
  for (const wire of [wires.messages, wires.chat]) {
    const events = Buffer.from(wire.events.join(""))
    let at = 1
    const relay = await openRelay(t, exchange =>
      streaming(
        events.subarray(0, at),
        {},
        {},
      )({
        ...exchange,
        send: async bytes =>
          bytes === lastChunk
            ? exchange.send(Buffer.concat([chunked(events.subarray(at)), Buffer.from(lastChunk)]))
            : exchange.send(bytes),
      }),
    )
    let first: string | undefined
    let calls = 0
    for (; at < events.length - 1; at += 3) {
      const { text } = await ask(relay.url + wire.path(true), wire.request(true))
      first ??= text
      calls += 1
      if (text !== first) t.equal(text, first, `${wire.name} cut at ${at}`)
    }
    t.equal(await relay.spent(), goodMicros * calls, wire.name)
    t.notMatch(first, "\ufffd")
  }
})

const oddStreams: Readonly<Record<string, (events: string) => string>> = {
  "comments between events": events => events.replaceAll("\n\n", "\n\n: ping\n\n"),
  "line ends of CR": events => events.replaceAll("\n", "\r"),
  "line ends of CRLF": events => events.replaceAll("\n", "\r\n"),
  "a byte order mark": events => `\ufeff${events}`,
  "an unknown event": events => `event: vendor_news\ndata: {"type":"vendor_news"}\n\n${events}`,
  "an unknown field and a retry": events => `retry: 10\nid: 7\nfoo: bar\n${events}`,
  "data on several lines": events => events.replaceAll(',"', ',\ndata: "'),
  "no blank line at the end": events => events.trimEnd(),
  "a done mark with spaces": events => `${events}data:   [DONE]  \n\n`,
}

for (const [name, spoil] of Object.entries(oddStreams)) {
  t.test(`a stream with ${name} is relayed unchanged and metered`, async t => {
    for (const wire of [wires.messages, wires.responses]) {
      const events = spoil(wire.events.join(""))
      const relay = await openRelay(t, streaming(events, { size: 11 }))
      t.equal((await ask(relay.url + wire.path(true), wire.request(true))).text, events, wire.name)
      t.equal(await relay.spent(), goodMicros, wire.name)
    }
  })
}

/** A plugin whose watcher keeps all that it is told, and tries to change it. */
const watching = (kept: { bytes: string; heads: number[]; ends: number }): AnyPlugin => ({
  name: "watching",
  api: 1,
  setup(host) {
    const watcher: Watcher = {
      head: status => void kept.heads.push(status),
      data: chunk => {
        kept.bytes += chunk.toString("latin1")
        chunk.fill(0)
      },
      end: () => void kept.ends++,
    }
    host.use({
      async run(call, next) {
        call.watch(watcher)
        return next()
      },
    })
  },
})

for (const wire of allWires) {
  t.test(`${wire.name}: a watcher sees every byte of the vendor, before any translation, and changes none`, async t => {
    for (const stream of [false, true]) {
      const body = stream ? wire.events.join("") : wire.whole
      const kept = { bytes: "", heads: [] as number[], ends: 0 }
      const handler = stream ? streaming(body, { size: 13 }) : answering({ body }, { size: 13 })
      const relay = await openRelay(t, handler, { plugins: [watching(kept)] })
      const answer = await ask(relay.url + wire.path(stream), wire.request(stream))
      t.same(kept, { bytes: Buffer.from(body).toString("latin1"), heads: [200], ends: 1 })
      if (wire.relayed) t.equal(answer.text, body)
      else t.match(answer.text, "Grüße")
      t.equal(await relay.spent(), goodMicros)
    }
  })
}

t.test("a step that refuses before next() keeps the call from the vendor", async t => {
  const guard: AnyPlugin = {
    name: "guard",
    api: 1,
    setup: host => host.use({ run: async () => Promise.reject(host.error("forbidden", "Not today")) }),
  }
  const relay = await openRelay(t, answering({ body: wires.messages.whole }), { plugins: [guard] })
  const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
  t.equal(answer.status, 403)
  t.equal(relay.vendor.connections.accepted, 0)
  t.equal(await relay.spent(), 0)
})
