/** Errors of vendors: native routes keep them, translated ones name them, our account's faults stay ours. */
import t from "tap"
import { testClock } from "../../core/testing.ts"
import { ask } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, type Handler, refusedOrigin, streaming } from "../fixtures/vendor.ts"
import { openRelay, vendorSecret, type Wire, wires } from "../fixtures/wires.ts"

const account = 502
/** The vendor's status, and the client's on a relayed and on a translated route. */
const statuses: readonly (readonly [vendor: number, relayed: number, translated: number])[] = [
  [400, 400, 400],
  [401, account, account],
  [402, account, account],
  [403, account, account],
  [404, 404, 400],
  [408, 408, 502],
  [409, 409, 400],
  [413, 413, 400],
  [422, 422, 400],
  [429, 429, 429],
  [500, 500, 500],
  [502, 502, 502],
  [503, 503, 502],
  [504, 504, 502],
  [529, 529, 502],
]

const bodies: Readonly<Record<Wire["adapter"], string>> = {
  anthropic: '{ "type":"error","error":{"type":"some_error","message":"told by the vendor"},"request_id":"req_1" }',
  openai: '{ "error":{"message":"told by the vendor","type":"some_error","param":"p","code":null} }',
  google: '{ "error":{"code":0,"message":"told by the vendor","status":"SOME"} }',
}

for (const wire of Object.values(wires)) {
  t.test(`${wire.name}: each status of a vendor, with its body and its waiting time`, async t => {
    await Promise.all(
      statuses.map(async ([status, relayed, translated]) => {
        const body = bodies[wire.adapter]
        const headers = { "retry-after": "7", "x-vendor-account": "acct-canary", "set-cookie": "vendor=canary" }
        const relay = await openRelay(t, answering({ status, body, headers }))
        const answer = await ask(relay.url + wire.path(false), wire.request(false))
        const expected = wire.relayed ? relayed : translated
        t.equal(answer.status, expected, `${status}`)
        const passes = wire.relayed && expected === status && status !== account
        if (passes || (wire.relayed && status === 502)) {
          t.equal(answer.text, body, `${status}: the body as it came`)
          t.equal(answer.headers["retry-after"], "7")
        } else {
          t.match(JSON.parse(answer.text), { detail: String, error: { message: String } }, `${status}: our own shape`)
          t.equal(answer.text.includes("told by the vendor"), !wire.relayed && expected === 400, `${status}: the text`)
          if (expected === 429) t.equal(answer.headers["retry-after"], "7")
        }
        t.notMatch(JSON.stringify(answer.headers), /canary/)
        t.equal(await relay.spent(), 0, `${status}: nothing is charged`)
      }),
    )
  })
}

t.test("an account's fault rests its secret; the next call meets nobody until an operator was there", async t => {
  for (const wire of [wires.messages, wires.chat]) {
    const relay = await openRelay(t, answering({ status: 401, body: bodies[wire.adapter] }))
    t.equal((await ask(relay.url + wire.path(false), wire.request(false))).status, 502)
    const asked = relay.vendor.requests.length
    const next = await ask(relay.url + wire.path(false), wire.request(false))
    t.equal(next.status, 502)
    t.ok(Number(next.headers["retry-after"]) >= 1)
    t.equal(relay.vendor.requests.length, asked)
    t.match(await relay.metrics(), `tollgate_upstream_breaker_state{vendor="${wire.adapter}",secret="main"} 2`)
  }
})

t.test("who meets nobody is told the wait for the first that may be tried again", async t => {
  const wire = wires.messages
  const refusing = answering({ status: 401, body: bodies.anthropic })
  const relay = await openRelay(t, refusing, { clock: testClock(), second: ({ reset }) => reset() })
  for (let call = 0; call < 5; call += 1) await ask(relay.url + wire.path(false), wire.request(false))
  t.same([relay.vendor.requests.length, relay.second.requests.length], [1, 5])
  const answer = await ask(relay.url + wire.path(false), wire.request(false))
  t.equal(answer.headers["retry-after"], "5", "not the 30 seconds of the account's fault")
})

t.test("the same secret is tried again when the vendor says, two seconds later at most", async t => {
  const wire = wires.messages
  for (const [said, waited] of [
    ["1", 1_000],
    ["60", 2_000],
  ] as const) {
    const clock = testClock()
    let asked = 0
    const handler: Handler = exchange => {
      asked += 1
      const answer = asked > 1 ? { body: wire.whole } : { status: 529, body: "{}", headers: { "retry-after": said } }
      return answering(answer)(exchange)
    }
    const relay = await openRelay(t, handler, { clock })
    const answer = ask(relay.url + wire.path(false), wire.request(false))
    await until(async () => (await relay.metrics()).includes("tollgate_upstream_retries_total{vendor"))
    await clock.advance(waited - 1)
    t.equal(asked, 1)
    await clock.advance(1)
    t.match(await answer, { status: 200 })
    t.equal(asked, 2)
  }
})

t.test("an account's fault moves on to the second target", async t => {
  const wire = wires.messages
  const second = answering({ body: wire.whole })
  const relay = await openRelay(t, answering({ status: 403, body: bodies.anthropic }), { second })
  t.match(await ask(relay.url + wire.path(false), wire.request(false)), { status: 200, text: wire.whole })
  t.equal(relay.vendor.requests.length, 1)
})

t.test("while every secret rests for its vendor's limit, calls are 429 as the one that met it", async t => {
  const limited = answering({ status: 429, headers: { "retry-after": "7" }, body: "{}" })
  const secrets = ["one", "two"].map(name => ({ env: "VENDOR_KEY", name }))
  for (const wire of [wires.chat, wires.messages]) {
    const clock = testClock()
    const relay = await openRelay(t, limited, { settings: { secrets }, clock })
    const call = async () => {
      const { status, headers } = await ask(relay.url + wire.path(false), wire.request(false))
      return { status, wait: headers["retry-after"] }
    }
    t.same(await call(), { status: 429, wait: "7" })
    await clock.advance(1_500)
    t.same(await call(), { status: 429, wait: "6" }, "5.5 seconds, rounded up")
    t.equal(relay.vendor.requests.length, 2, "the vendor is left in peace")
    t.match(await relay.metrics(), /tollgate_errors_total\{[^}]*vendor_rate_limited[^}]*\} 2/)
  }
})

t.test("account faults behind other statuses are ours as well", async t => {
  const told: readonly (readonly [wire: Wire, status: number, body: object])[] = [
    [
      wires.responses,
      429,
      { error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" } },
    ],
    [
      wires.generate,
      400,
      {
        error: {
          code: 400,
          message: "API key not valid.",
          status: "INVALID_ARGUMENT",
          details: [{ reason: "API_KEY_INVALID" }],
        },
      },
    ],
    [
      wires.messages,
      400,
      { type: "error", error: { type: "invalid_request_error", message: "Your credit balance is too low" } },
    ],
  ]
  for (const [wire, status, body] of told) {
    const relay = await openRelay(t, answering({ status, body: JSON.stringify(body) }))
    const answer = await ask(relay.url + wire.path(false), wire.request(false))
    t.equal(answer.status, 502, wire.name)
    t.notMatch(answer.text, /quota|API key|balance/i, wire.name)
  }
})

t.test("a body or a field that echoes our secret never reaches the client", async t => {
  const echo = JSON.stringify({ error: { type: "invalid_request_error", message: `bad key ${vendorSecret}` } })
  const escaped = echo.replace(
    vendorSecret,
    [...vendorSecret].map(one => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  )
  for (const wire of [wires.messages, wires.chat, wires["chat on messages"]]) {
    for (const body of [echo, escaped]) {
      const relay = await openRelay(t, answering({ status: 400, body }))
      const answer = await ask(relay.url + wire.path(false), wire.request(false))
      t.equal(answer.status, 502, wire.name)
      t.notMatch(JSON.stringify(JSON.parse(answer.text)), vendorSecret, wire.name)
      t.notMatch(JSON.stringify(relay.lines), vendorSecret, wire.name)
    }
  }
  const headers = { "request-id": `id-${vendorSecret}`, "retry-after": "3" }
  const relay = await openRelay(t, answering({ body: wires.messages.whole, headers }))
  const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
  t.equal(answer.headers["request-id"], undefined)
  t.equal(answer.headers["retry-after"], "3")
})

t.test("a secret in the words of a translated stream's error is not told", async t => {
  const wire = wires.chat
  const error = `data: ${JSON.stringify({ error: { type: "invalid_request_error", message: `refused ${vendorSecret}` } })}\n\n`
  const relay = await openRelay(t, streaming(wire.events.slice(0, 2).join("") + error))
  const answer = await ask(relay.url + wire.path(true), wire.request(true))
  t.match(answer.text, /"error"/)
  t.notMatch(answer.text, vendorSecret)
})

t.test("a secret in an error inside a translated 200 is not told", async t => {
  const word = { type: "invalid_request_error", code: "invalid_prompt", status: "INVALID_ARGUMENT" }
  for (const wire of [wires.chat, wires["chat on messages"]]) {
    const body = JSON.stringify({ type: "error", error: { ...word, message: `refused ${vendorSecret}` } })
    const relay = await openRelay(t, answering({ body }))
    const answer = await ask(relay.url + wire.path(false), wire.request(false))
    t.equal(answer.status, 502, wire.name)
    t.notMatch(answer.text, vendorSecret, wire.name)
    t.notMatch(JSON.stringify(relay.lines), vendorSecret, wire.name)
  }
})

t.test("a field that no head can carry is left out, the answer is not", async t => {
  const headers = { "request-id": "日本", "anthropic-ratelimit-requests-limit": "5" }
  const relay = await openRelay(t, answering({ body: wires.messages.whole, headers }))
  const answer = await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
  t.equal(answer.status, 200)
  t.equal(answer.headers["anthropic-ratelimit-requests-limit"], "5")
})

t.test(
  "the line of a call that every vendor failed tells who was tried, by which secret, and what came back",
  async t => {
    const wire = wires.chat
    const relay = await openRelay(t, answering({ status: 401, body: '{"error":{"message":"no such key"}}' }), {
      second: answering({ status: 500, body: "{}" }),
    })
    const answer = await ask(relay.url + wire.path(false), wire.request(false))
    t.equal(answer.status, 500)
    const [line] = relay.lines.filter(({ msg }) => msg === "call")
    t.match(line, {
      id: answer.headers["x-request-id"],
      outcome: "rejected",
      code: "upstream_failed",
      vendor: "openai-two",
      attempts: [
        { vendor: "openai", secret: "main", status: 401 },
        { vendor: "openai-two", secret: "main", status: 500 },
      ],
    })
    t.notMatch(JSON.stringify(line), "no such key")
    const unreachable = await openRelay(t, undefined, { settings: { origin: await refusedOrigin() } })
    await ask(unreachable.url + wire.path(false), wire.request(false))
    const [refused] = unreachable.lines.filter(({ msg }) => msg === "call")
    t.match(refused, { attempts: [{ vendor: "openai", secret: "main", status: 0, error: "upstream_unreachable" }, {}] })
    await ask(relay.url + wire.path(false), wire.request(false), { headers: { authorization: "Bearer tg_none" } })
    const early = relay.lines.findLast(({ msg }) => msg === "call")
    t.match(early, { status: 401, attempts: undefined })
  },
)
