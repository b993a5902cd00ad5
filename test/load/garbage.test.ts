/**
 * What a call leaves behind is young garbage: a call that stays reachable from something old (a table that was rebuilt,
 * a hidden class of its own) costs a copy at each collection, and its memory until a full one.
 */
import { hash } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import t, { type Test } from "tap"
import { memberKey, model, organisation } from "../process/gateway-process.ts"
import { call, chat, serve, siteOf } from "../process/serve.ts"

/** Collections of the young generation come often, full ones hardly ever. */
const through = ["env", "NODE_OPTIONS=--max-semi-space-size=8"]
const clients = 4
const calls = 1_200
/** What one call may leave in the old generation; one that is kept whole leaves 10 to 20 KB. */
const leftBytesMax = 2_000

const usage = { input_tokens: 10, output_tokens: 20 }
const whole = { type: "message", id: "msg_1", role: "assistant", content: [{ type: "text", text: "hi" }], usage }
const streamed = [
  { type: "message_start", message: { ...whole, content: [] } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ...Array.from({ length: 10 }, () => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text: "hi" },
  })),
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
  { type: "message_stop" },
]
  .map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("")

const startVendor = async (t: Test): Promise<string> => {
  const server = createServer(async (request, response) => {
    const asked = Buffer.concat(await request.toArray()).toString()
    const [type, body] = asked.includes('"stream":true')
      ? ["text/event-stream", streamed]
      : ["application/json", JSON.stringify(whole)]
    response.writeHead(200, { "content-type": type }).end(body)
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const open = async (t: Test) => {
  const vendor = { origin: await startVendor(t), secrets: [{ env: "VENDOR_KEY" }] }
  const site = siteOf(
    t,
    {
      sandbox: false,
      vendors: { anthropic: vendor },
      bootstrap: organisation({ alice: { credits: 10_000_000, keys: [`sha256:${hash("sha256", memberKey(1))}`] } }),
    },
    { models: { claude: model("anthropic") } },
  )
  return serve(t, site, { through, env: { VENDOR_KEY: "vendor-secret" } })
}

const oldBytes = async (ops: string): Promise<number> => {
  const text = await (await fetch(`${ops}/metrics`)).text()
  return Number(/^nodejs_heap_space_size_used_bytes\{space="old"\} (\S+)/m.exec(text)?.[1])
}

const messages = [{ role: "user", content: "hi" }]
const kinds: Readonly<Record<string, (gateway: { readonly url: string }) => Promise<{ readonly status: number }>>> = {
  translated: gateway => chat(gateway, { model: "claude" }),
  "translated stream": gateway => chat(gateway, { model: "claude", stream: true }),
  relayed: gateway => call(gateway, "/vendor-a/v1/messages/", { body: { model: "claude", max_tokens: 9, messages } }),
  "relayed stream": gateway =>
    call(gateway, "/vendor-a/v1/messages/", { body: { model: "claude", max_tokens: 9, messages, stream: true } }),
  refused: gateway => call(gateway, "/credits/", { key: "tg_of_nobody_0000000000000000000000000000000" }),
}

for (const [kind, one] of Object.entries(kinds)) {
  t.test(`${kind}: a call leaves nothing in the old generation`, async t => {
    const gateway = await open(t)
    const many = async (): Promise<void> => {
      const client = async (): Promise<void> => {
        for (let at = 0; at < calls / clients; at += 1)
          if ((await one(gateway)).status !== (kind === "refused" ? 401 : 200)) throw new Error("not the answer")
      }
      await Promise.all(Array.from({ length: clients }, client))
    }
    await many()
    const before = await oldBytes(gateway.ops)
    await many()
    const left = ((await oldBytes(gateway.ops)) - before) / calls
    t.comment(`${left.toFixed(0)} bytes a call`)
    t.ok(left < leftBytesMax, `${left} bytes a call`)
  })
}
