/** Requests for the whole socket that come while an earlier one waits for its answer. */
import t from "tap"
import type { Plugin } from "../../core/index.ts"
import { postHead, rawClient } from "../fixtures/client.ts"
import { answering, type Handler } from "../fixtures/vendor.ts"
import { goodMicros, halting, openRelay, wires } from "../fixtures/wires.ts"

const wire = wires.messages
const post = (stream: boolean): string => {
  const body = JSON.stringify(wire.request(stream))
  return postHead("/v1/gateway/vendor-a/v1/messages", [`content-length: ${body.length}`]) + body
}

/** A route that takes WebSockets of everybody. */
const live = (): Plugin & { taken: number } => ({
  taken: 0,
  name: "live",
  api: 1,
  setup(host) {
    host.route({
      method: "GET",
      path: "/live/",
      access: "public",
      dialect: "plain",
      model: "none",
      charge: "none",
      limit: "none",
      upgrade: true,
      handle: call => {
        this.taken += 1
        return call.reply(200, "taken")
      },
    })
  },
})

const upgradeTo = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: gateway\r\nuser-agent: raw\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`

const greedy: readonly (readonly [name: string, request: string])[] = [
  ["a WebSocket", upgradeTo("/v1/gateway/live/")],
  ["a WebSocket of no route", upgradeTo("/nowhere")],
  ["a tunnel", "CONNECT gateway:443 HTTP/1.1\r\nhost: gateway\r\n\r\n"],
]

for (const [name, request] of greedy) {
  t.test(`${name} is not taken before an earlier request is answered: that answer is whole, and the last`, async t => {
    const gate = Promise.withResolvers<void>()
    const slowly: Handler = async exchange => {
      await gate.promise
      await answering({ body: wire.whole })(exchange)
    }
    const plugin = live()
    const relay = await openRelay(t, slowly, { plugins: [plugin] })
    const client = await rawClient(t, relay.url)
    client.write(post(false) + request)
    await relay.vendor.next()
    gate.resolve()
    const text = await client.closed
    t.same(text.match(/HTTP\/1\.1 \d{3}/g), ["HTTP/1.1 200"])
    t.match(text, /connection: close/i)
    t.match(text, '"end_turn"')
    t.equal(plugin.taken, 0)
    t.equal(await relay.spent(), goodMicros)
  })

  t.test(`${name} behind a stream that is under way ends the connection with it`, async t => {
    const gate = Promise.withResolvers<void>()
    const plugin = live()
    const relay = await openRelay(t, halting(wire, gate.promise), { plugins: [plugin] })
    const client = await rawClient(t, relay.url)
    client.write(post(true))
    await client.until("Gr")
    client.write(request)
    client.write(post(true)) // what was to go through the tunnel
    gate.resolve()
    const text = await client.closed
    t.same(text.match(/HTTP\/1\.1 \d{3}/g), ["HTTP/1.1 200"])
    t.ok(text.endsWith("\r\n0\r\n\r\n"))
    t.equal(plugin.taken, 0)
    t.equal(await relay.spent(), goodMicros)
  })
}
