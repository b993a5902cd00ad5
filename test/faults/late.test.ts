/** Relayed streams that tell a fault of our account, or our secret, after content: the gateway's own words take its place. */
import t from "tap"
import { ask } from "../fixtures/client.ts"
import { streaming } from "../fixtures/vendor.ts"
import { beginning, openRelay, relayWires, vendorSecret, type Wire, wires } from "../fixtures/wires.ts"

const text = "told by the vendor"

const accountError: Readonly<Record<Wire["adapter"], object>> = {
  anthropic: { type: "error", error: { type: "billing_error", message: text } },
  openai: { type: "error", error: { type: "insufficient_quota", code: "insufficient_quota", message: text } },
  google: { error: { code: 403, status: "PERMISSION_DENIED", message: text } },
}

const serverError: Readonly<Record<Wire["adapter"], (message: string) => object>> = {
  anthropic: message => ({ type: "error", error: { type: "api_error", message } }),
  openai: message => ({ type: "error", error: { type: "server_error", code: "server_error", message } }),
  google: message => ({ error: { code: 500, status: "INTERNAL", message } }),
}

const eventOf = ({ adapter }: Wire, data: string): string =>
  `${adapter === "google" ? "" : "event: error\n"}data: ${data}\n\n`

for (const wire of relayWires) {
  const echo = JSON.stringify(serverError[wire.adapter](`${text}: ${vendorSecret}`))
  const faults = {
    "an account's fault": JSON.stringify(accountError[wire.adapter]),
    "our secret": echo,
    "our secret in escapes": echo.replace(vendorSecret[0]!, () => `\\u00${vendorSecret.charCodeAt(0).toString(16)}`),
  }
  for (const [what, data] of Object.entries(faults)) {
    t.test(`${wire.name}: ${what} after content is not told`, async t => {
      const events = beginning(wire) + eventOf(wire, data)
      for (const size of [1, 7, undefined]) {
        for (const sent of [events, events.replaceAll("\n", "\r\n")]) {
          const relay = await openRelay(t, streaming(sent, size === undefined ? {} : { size }))
          const answer = await ask(relay.url + wire.path(true), wire.request(true))
          t.equal(answer.end, "whole")
          const before = sent === events ? beginning(wire) : beginning(wire).replaceAll("\n", "\r\n")
          t.ok(answer.text.startsWith(before), "what came before it is not lost")
          t.notMatch(answer.text, text)
          t.match(answer.text.slice(before.length), /^\s*(event: error\n)?data: \{.*refused the gateway's own account/)
        }
      }
    })
  }
}

t.test("a harmless fault before it, or a stream that ends without its blank line, hides neither", async t => {
  for (const wire of relayWires) {
    const harmless = eventOf(wire, JSON.stringify(serverError[wire.adapter]("some fault")))
    for (const fault of [accountError[wire.adapter], serverError[wire.adapter](`${text}: ${vendorSecret}`)]) {
      const last = eventOf(wire, JSON.stringify(fault))
      for (const [before, ours] of [
        [beginning(wire) + harmless, last],
        [beginning(wire), last.trimEnd()],
        [beginning(wire), last.slice(0, -1)],
      ] as const) {
        for (const size of [undefined, 7]) {
          const relay = await openRelay(t, streaming(before + ours, size === undefined ? {} : { size }))
          const answer = await ask(relay.url + wire.path(true), wire.request(true))
          t.equal(answer.end, "whole")
          t.ok(answer.text.startsWith(before), "what came before it is not lost")
          t.notMatch(answer.text, text)
          t.match(answer.text.slice(before.length), /^\s*(event: error\n)?data: \{.*refused the gateway's own account/)
        }
      }
    }
  }
})

t.test("a head that went out for want of news does not let through what comes after it", async t => {
  const json = { "content-type": "application/json" }
  const nothing = ": nothing\n".repeat(8_000)
  for (const wire of relayWires) {
    const fault = JSON.stringify(accountError[wire.adapter])
    const relay = await openRelay(t, streaming(nothing + eventOf(wire, fault), { size: nothing.length }))
    const answer = await ask(relay.url + wire.path(true), wire.request(true))
    t.match(answer, { status: 200, end: "whole" })
    t.notMatch(answer.text, text)
    t.match(answer.text.slice(nothing.length), /^\s*(event: error\n)?data: \{.*refused the gateway's own account/)
    t.equal(await relay.spent(), 0)
  }
  const blanks = `[${" ".repeat(70_000)}`
  const sent = `${blanks}${JSON.stringify(accountError.google)}]`
  const relay = await openRelay(t, streaming(sent, { size: blanks.length }, json))
  const answer = await ask(relay.url + wires.generate.path(true).replace("?alt=sse", ""), wires.generate.request(true))
  t.match(JSON.parse(answer.text), [{ error: { code: 502, status: "UNAVAILABLE" } }])
  t.notMatch(answer.text, text)
})

t.test("an array ends as JSON, its last element the gateway's error", async t => {
  const element = '{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi, "}]}}]}'
  const fault = JSON.stringify(accountError.google)
  const path = wires.generate.path(true).replace("?alt=sse", "")
  for (const sent of [`[${element},${fault}]`, `[${element}\n,\r\n${fault}\n]`]) {
    for (const size of [1, 7, undefined]) {
      const headers = { "content-type": "application/json" }
      const relay = await openRelay(t, streaming(sent, size === undefined ? {} : { size }, headers))
      const answer = await ask(relay.url + path, wires.generate.request(true))
      const own = { error: { code: 502, status: "UNAVAILABLE" } }
      t.match(JSON.parse(answer.text), [JSON.parse(element), own])
      t.notMatch(answer.text, text)
    }
  }
})
