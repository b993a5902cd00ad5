/** What a stop does to clients that still send, and to plugins that still wait for a bill. */
import t from "tap"
import type { AnyPlugin } from "../../core/loader.ts"
import { testClock } from "../../core/testing.ts"
import { ask, postHead, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { answering, chunked, type Exchange, type Handler, lastChunk, streamHead } from "../fixtures/vendor.ts"
import { halting, openRelay, sample, wires } from "../fixtures/wires.ts"

const path = "/v1/gateway/vendor-a/v1/messages"

t.test("an upload that outlasts the time to stop gets a 503 that says when to try again", async t => {
  const relay = await openRelay(t, answering({ body: wires.messages.whole }), { gateway: { shutdown: "20ms" } })
  const client = await rawClient(t, relay.url)
  client.write(postHead(path, ["content-length: 5000000"]) + "x".repeat(1_000_000))
  await until(async () => sample(await relay.metrics(), "tollgate_body_bytes_in_flight") >= 1_000_000)
  const stopped = relay.gateway.stop()
  const answer = await client.until("shutting down")
  client.write("y") // it sends on: nothing breaks under it
  t.match(answer, /^HTTP\/1\.1 503 /)
  t.match(answer, /retry-after: 1\r\n/)
  t.match(answer, /connection: close\r\n/)
  client.socket.end()
  await stopped
  const line = relay.lines.find(({ msg }) => msg === "call")
  t.match(line, { status: 503, code: "draining", outcome: "rejected" })
  t.equal(relay.vendor.requests.length, 0)
})

t.test("a stop waits for the plugins of an old configuration too", async t => {
  const happened: string[] = []
  let generation = 0
  const clock = testClock()
  const slow: AnyPlugin = {
    name: "slow",
    api: 1,
    setup() {
      generation += 1
      const [name, ms] = generation === 1 ? ["old", 9_000] : ["new", 0]
      return async () => {
        await new Promise<void>(resolve => void clock.after(ms as number, resolve))
        happened.push(`${name} torn down`)
      }
    },
  }
  const gate = Promise.withResolvers<void>()
  const relay = await openRelay(t, halting(wires.messages, gate.promise), { plugins: [slow], clock })
  const answer = ask(relay.url + wires.messages.path(true), wires.messages.request(true))
  await relay.vendor.next()
  t.same(await relay.reload({}), [])
  const stopped = relay.gateway.stop().then(() => happened.push("stopped"))
  gate.resolve()
  t.match(await answer, { status: 200, end: "whole" })
  await until(async () => {
    await clock.advance(100)
    return happened.includes("stopped")
  })
  await stopped
  t.same(happened, ["new torn down", "old torn down", "stopped"])
})

/** Notes what a call whose client left came to, and when it is taken down itself. */
const exporter = (happened: string[]) => ({
  name: "exporter",
  api: 1,
  setup(host: { use(step: object): void }) {
    host.use({
      async run(_: unknown, next: () => Promise<{ later?: Promise<{ micros?: number }> }>) {
        const outcome = await next()
        void outcome.later?.then(({ micros = 0 }) => happened.push(micros > 0 ? "billed" : "free"))
        return outcome
      },
    })
    return () => void happened.push("torn down")
  },
})

const [first = "", ...rest] = wires.messages.events

/** How a vendor goes on after its client left, and what the call comes to. */
const ends: Readonly<Record<string, readonly [begin: string, end: (exchange: Exchange) => unknown, bill: string]>> = {
  "comes to its end": [
    streamHead + chunked(first + rest[0] + rest[1]),
    ({ send }) => send(chunked(rest.slice(2).join("")) + lastChunk),
    "billed",
  ],
  "dies before its head": ["", ({ reset }) => reset(), "free"],
  refuses: ["", answering({ status: 500, body: "{}" }), "free"],
}

for (const [how, [begin, end, bill]] of Object.entries(ends)) {
  t.test(`a plugin is taken down after the bill that it waits for: the vendor ${how}`, async t => {
    const happened: string[] = []
    const gate = Promise.withResolvers<void>()
    const handler: Handler = async exchange => {
      await exchange.send(begin)
      await gate.promise
      await end(exchange)
    }
    const relay = await openRelay(t, handler, { plugins: [exporter(happened) as never] })
    const client = await rawClient(t, relay.url)
    const body = JSON.stringify(wires.messages.request(true))
    client.write(postHead(path, [`content-length: ${body.length}`]) + body)
    await relay.vendor.next()
    if (begin !== "") await client.until("content_block")
    client.socket.destroy()
    await until(async () => sample(await relay.metrics(), "tollgate_requests_in_flight") === 0)
    t.same(await relay.reload({}), [])
    gate.resolve()
    await until(() => happened.length === 2)
    t.same(happened, [bill, "torn down"])
  })
}

t.test("a route of one's own is told that its client left, and that it is stopped", async t => {
  const told: string[] = []
  const signs: AnyPlugin = {
    name: "signs",
    api: 1,
    setup: host =>
      host.route({
        method: "GET",
        path: "/waits/",
        access: "key",
        dialect: "plain",
        model: "none",
        charge: "none",
        limit: "common",
        async handle(call) {
          const over = Promise.withResolvers<void>()
          for (const sign of ["left", "stop"] as const)
            call[sign].addEventListener("abort", () => {
              told.push(sign)
              over.resolve()
            })
          told.push("waits")
          await over.promise
          return call.reply(200, {})
        },
      }),
  }
  const relay = await openRelay(t, undefined, { plugins: [signs], gateway: { shutdown: "20ms" } })
  const asked = async () => {
    const client = await rawClient(t, relay.url)
    client.write(postHead("/v1/gateway/waits/", []).replace("POST", "GET"))
    await until(() => told.at(-1) === "waits")
    return client
  }
  const leaving = await asked()
  leaving.socket.destroy()
  await until(() => told.length === 2)
  await asked()
  await relay.gateway.stop()
  t.same(told, ["waits", "left", "waits", "stop"])
})
