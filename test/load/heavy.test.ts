import { hash } from "node:crypto"
import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import t, { type Test } from "tap"
import { until } from "../fixtures/until.ts"
import { type GatewayProcess, memberKey, organisation, vendorsAt } from "../process/gateway-process.ts"
import { call, countBy, credits, ledgerFindings, right, serve, siteOf } from "../process/serve.ts"

const mb = 2 ** 20

const memory = ({ pid }: GatewayProcess, name: "VmRSS" | "VmHWM"): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) / 1024

/** A vendor that answers when it is told to. */
const heldVendor = async (t: Test, begin: (response: ServerResponse) => void = () => {}) => {
  const waiting: ServerResponse[] = []
  const server = createServer((request: IncomingMessage, response) => {
    request.resume().on("end", () => {
      begin(response)
      waiting.push(response)
    })
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, waiting }
}

const open = async (t: Test, origin: string) => {
  const vendors = Object.entries(vendorsAt(origin)).map(([name, one]) => [
    name,
    { ...(one as object), secrets: [{ env: "VENDOR_KEY", name: "first" }] },
  ])
  const site = siteOf(t, {
    sandbox: false,
    vendors: Object.fromEntries(vendors),
    bootstrap: organisation({ alice: { credits: 10_000_000, keys: [`sha256:${hash("sha256", memberKey(1))}`] } }),
  })
  const env = { VENDOR_KEY: "vendor-secret" }
  return { gateway: await serve(t, site, { env }), check: () => ledgerFindings(site, env) }
}

interface Client {
  readonly status: Promise<number>
  readonly retryAfter: () => string | undefined
  /** Resolves with the body's size at its end. */
  readonly ended: Promise<number>
}

const send = ({ url }: GatewayProcess, body: string | Buffer): Client => {
  let retryAfter: string | undefined
  let end: (bytes: number) => void = () => {}
  const ended = new Promise<number>(resolve => {
    end = resolve
  })
  const status = new Promise<number>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${memberKey(1)}`,
      "content-type": "application/json",
      "user-agent": "load",
      "content-length": Buffer.byteLength(body),
    }
    const outgoing = request(`${url}/vendor-a/v1/messages/`, { method: "POST", headers, agent: false }, answer => {
      retryAfter = answer.headers["retry-after"]
      resolve(answer.statusCode ?? 0)
      let bytes = 0
      answer.on("data", chunk => {
        bytes += chunk.length
      })
      answer.on("close", () => end(bytes))
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })
  status.catch(() => {})
  return { status, retryAfter: () => retryAfter, ended }
}

const usage = { input_tokens: 10, output_tokens: 20 }
const message = { type: "message", id: "msg_1", role: "assistant", model: "m", content: [], usage }

t.test("bodies beyond the budget are shed with 503, the others are served, and memory stays within it", async t => {
  const { origin, waiting } = await heldVendor(t)
  const { gateway, check } = await open(t, origin)
  const data = "A".repeat(24 * mb - 1_000)
  const source = { type: "base64", media_type: "image/png", data }
  const body = Buffer.from(
    JSON.stringify({
      model: "claude",
      max_tokens: 9,
      messages: [{ role: "user", content: [{ type: "image", source }] }],
    }),
  )
  const before = memory(gateway, "VmHWM")
  const clients = Array.from({ length: 16 }, () => send(gateway, body))
  const statuses: number[] = []
  for (const client of clients)
    void client.status.then(
      status => statuses.push(status),
      () => statuses.push(0),
    )
  await until(() => statuses.length + waiting.length === clients.length)
  t.ok(waiting.length >= 1 && waiting.length <= 10, `${waiting.length} of 16 fit into 256 MB`)
  for (const response of waiting)
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message))
  await until(() => statuses.length === clients.length)
  const counts = countBy(statuses, status => status)
  t.equal(counts[200], waiting.length)
  t.equal((counts[503] ?? 0) + (counts[0] ?? 0), clients.length - waiting.length, JSON.stringify(counts))
  for (const client of clients)
    if ((await client.status.catch(() => 0)) === 503) t.match(client.retryAfter(), /^[1-9]\d*$/)
  const growth = memory(gateway, "VmHWM") - before
  t.comment(`resident memory grew by ${growth.toFixed(0)} MB at most`)
  t.ok(growth < 2 * 256, `${growth} MB`)
  t.equal((await call(gateway, "/models/")).status, 200)
  t.match(await credits(gateway), { held: 0 })
  t.same(await check(), right)
})

const event = (data: { readonly type: string }): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const start = event({ type: "message_start", message } as never)
const block = event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } } as never)
const delta = event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } } as never)
const stop = event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage } as never)
const last = event({ type: "message_stop" })

t.test("1,000 streams are open at once, each gets every byte, and each is charged", async t => {
  const streams = 1_000
  const { origin, waiting } = await heldVendor(t, response => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(start + block + delta)
  })
  const { gateway, check } = await open(t, origin)
  const body = JSON.stringify({
    model: "claude",
    max_tokens: 9,
    stream: true,
    messages: [{ role: "user", content: "hi" }],
  })
  const clients = Array.from({ length: streams }, () => send(gateway, body))
  const statuses = await Promise.all(clients.map(({ status }) => status))
  t.same(
    countBy(statuses, status => status),
    { 200: streams },
  )
  t.equal(waiting.length, streams)
  const resident = memory(gateway, "VmRSS")
  t.comment(`resident memory under ${streams} streams: ${resident.toFixed(0)} MB`)
  t.ok(resident < 400, `${resident} MB`)
  for (const response of waiting) response.end(stop + last)
  const bytes = await Promise.all(clients.map(({ ended }) => ended))
  t.same(
    countBy(bytes, one => one),
    { [(start + block + delta + stop + last).length]: streams },
  )
  await until(async () => (await credits(gateway)).held === 0)
  const { balance } = await credits(gateway)
  t.equal(Math.round((10_000_000 - balance) * 1_000_000), streams * 50_000)
  t.same(await check(), right)
})
