/** Every recorded answer through the real routes: its bytes, and its price to the last micro. */
import t from "tap"
import { ask } from "../fixtures/client.ts"
import { type Answer, recorded } from "../fixtures/recorded.ts"
import { recordedCredits, recordedPrice } from "../fixtures/recorded-credits.ts"
import { answering, type Handler, streaming } from "../fixtures/vendor.ts"
import { openRelay, sample, type Wire, wires } from "../fixtures/wires.ts"

/** The folders of recorded answers that speak a route's wire. */
const folders: readonly (readonly [wire: Wire, vendors: readonly string[]])[] = [
  [wires.messages, ["anthropic"]],
  [wires.generate, ["google"]],
  [wires.responses, ["openai-responses", "open-responses", "xai-responses"]],
  [
    wires.chat,
    [
      "openai-chat",
      "openai-compatible",
      "deepseek",
      "groq",
      "mistral",
      "moonshot",
      "perplexity",
      "xai-chat",
      "alibaba",
    ],
  ],
  [wires["chat on messages"], ["anthropic"]],
]

/** Long streams are cut at every 1,021st byte instead of every one: the same code, a hundredth of the time. */
const sizesOf = ({ streamed, body }: Answer): readonly (number | undefined)[] =>
  !streamed ? [undefined] : [undefined, body.length < 8_000 ? 1 : 1_021]

const handlerOf = ({ streamed, body, status }: Answer, size: number | undefined): Handler => {
  const cut = size === undefined ? {} : { size }
  return streamed ? streaming(body, cut) : answering({ status, body }, cut)
}

for (const [wire, vendors] of folders) {
  for (const vendor of vendors) {
    t.test(`${wire.name}: what ${vendor} answered costs what its own numbers say`, async t => {
      let answer: Handler | undefined
      const relay = await openRelay(t, exchange => answer?.(exchange), { price: recordedPrice })
      let spent = 0
      for (const [name, credits] of Object.entries(recordedCredits[vendor] ?? {})) {
        for (const [at, one] of recorded(vendor, name).entries()) {
          const expected = credits[at]
          if (expected === undefined || expected === "none") continue
          for (const size of sizesOf(one)) {
            const told = `${name} ${at}, ${size === undefined ? "at once" : `in pieces of ${size}`}`
            answer = handlerOf(one, size)
            const heard = await ask(relay.url + wire.path(one.streamed), wire.request(one.streamed))
            t.equal(heard.status, 200, `${told} ${heard.status === 200 ? "" : heard.text}`)
            t.equal(heard.end, "whole", told)
            if (wire.relayed) t.ok(heard.body.equals(one.body), `${told}: the bytes`)
            if (!one.streamed) t.equal(heard.headers["x-credits-charged"], String(expected), told)
            const now = await relay.spent()
            t.equal(now - spent, Math.round(expected * 1_000_000), told)
            spent = now
          }
        }
      }
      t.ok(spent > 0)
      const metrics = await relay.metrics()
      t.notMatch(metrics, /^tollgate_usage_missing_total\{.*\} [1-9]/m)
      t.notMatch(metrics, /^tollgate_usage_unpriced_total\{.*\} [1-9]/m)
      t.equal(sample(metrics, "tollgate_ledger_holds"), 0)
    })
  }
}
