/** Marked secrets in every place where one can stand: none is seen on the other side, in a log, in a metric, in an error. */
import t from "tap"
import { testKey } from "../../core/testing.ts"
import { ask } from "../fixtures/client.ts"
import { type Answer, answering, streaming } from "../fixtures/vendor.ts"
import { allWires, openRelay, vendorSecret, type Wire } from "../fixtures/wires.ts"

const canary = (place: string): string => `canary-${place}-b7e2d`

/** Fields of a client that are its own, or its network's. */
const clientFields: Readonly<Record<string, string>> = {
  cookie: `session=${canary("cookie")}`,
  "x-forwarded-for": canary("forwarded-for"),
  "x-forwarded-host": canary("forwarded-host"),
  forwarded: `for=${canary("forwarded")}`,
  "x-real-ip": canary("real-ip"),
  "x-custom": canary("custom"),
  "x-goog-api-key": testKey,
  "proxy-authorization": canary("proxy"),
  referer: canary("referer"),
  origin: canary("origin"),
  via: canary("via"),
  te: "trailers",
  traceparent: canary("traceparent"),
  anthropic_version: canary("underscore"),
  "user-agent": canary("agent"),
  "openai-organization": canary("organization"),
  "x-request-id": canary("request-id"),
}

const vendorFields: Answer["headers"] = {
  "set-cookie": `vendor=${canary("set-cookie")}`,
  "openai-organization": canary("organization"),
  "anthropic-organization-id": canary("organization-id"),
  "x-vendor-trace": canary("trace"),
  server: canary("server"),
  via: canary("via"),
  "www-authenticate": canary("authenticate"),
  location: canary("location"),
  "x-api-key": vendorSecret,
  "request-id": vendorSecret,
  "retry-after": vendorSecret,
}

interface Case {
  readonly name: string
  readonly stream: boolean
  readonly handler: (wire: Wire) => Parameters<typeof openRelay>[1]
}

const cases: readonly Case[] = [
  { name: "a whole answer", stream: false, handler: wire => answering({ body: wire.whole, headers: vendorFields }) },
  { name: "a stream", stream: true, handler: wire => streaming(wire.events.join(""), {}, vendorFields) },
  {
    name: "a client's fault",
    stream: false,
    handler: () => answering({ status: 400, body: "{}", headers: vendorFields }),
  },
  {
    name: "an account's fault",
    stream: false,
    handler: () => answering({ status: 401, body: `{"error":"${vendorSecret}"}`, headers: vendorFields }),
  },
  {
    name: "a broken answer",
    stream: false,
    handler:
      () =>
      ({ reset }) =>
        reset(),
  },
]

for (const wire of allWires) {
  t.test(`${wire.name}: marked secrets stay where they belong`, async t => {
    for (const { name, stream, handler } of cases) {
      const relay = await openRelay(t, handler(wire))
      const query = `${wire.path(stream).includes("?") ? "&" : "?"}key=${canary("query")}&api_key=${canary("query")}`
      const answer = await ask(relay.url + wire.path(stream) + query, wire.request(stream), { headers: clientFields })
      const [sent] = relay.vendor.requests
      t.ok(sent, `${name}: the vendor was asked`)
      t.notMatch(sent!.head, /canary-(?!of-the-vendor)/, `${name}: nothing of the client's reaches the vendor`)
      t.notMatch(sent!.head, testKey)
      t.match(sent!.head, vendorSecret)
      const heard = JSON.stringify(answer.headers) + answer.text
      t.notMatch(heard, /canary/, `${name}: nothing of the vendor's reaches the client`)
      await relay.spent()
      const logs = JSON.stringify(relay.lines)
      t.notMatch(logs, vendorSecret, `${name}: the log`)
      t.notMatch(logs, testKey, `${name}: the log`)
      t.notMatch(logs.replaceAll(canary("request-id"), ""), /canary/, `${name}: the log holds the client's id only`)
      t.notMatch(await relay.metrics(), /canary|tg_test/, `${name}: the metrics`)
    }
  })
}

t.test("keys that are refused stand in no answer, log or metric", async t => {
  const relay = await openRelay(t)
  const guessed = "tg_canary_guess_000000000000000000000000000"
  for (const headers of [
    { authorization: `Bearer ${guessed}` },
    { "x-api-key": guessed, authorization: "" },
    { authorization: `Basic ${guessed}` },
    { authorization: `Bearer ${guessed} x` },
  ] as readonly Record<string, string>[]) {
    const answer = await ask(`${relay.url}/credits/`, undefined, { headers })
    t.equal(answer.status, 401)
    t.notMatch(answer.text, "canary")
  }
  t.notMatch(JSON.stringify(relay.lines), "canary")
  t.notMatch(await relay.metrics(), "canary")
})

t.test("a prompt stands in no log, whatever happens to it", async t => {
  for (const { handler, stream } of cases) {
    const wire = allWires[0]!
    const relay = await openRelay(t, handler(wire))
    const request = { ...wire.request(stream), messages: [{ role: "user", content: canary("prompt") }] }
    await ask(relay.url + wire.path(stream), request)
    await ask(relay.url + wire.path(stream), `${JSON.stringify(request)}}`)
    t.notMatch(JSON.stringify(relay.lines), canary("prompt"))
  }
})
