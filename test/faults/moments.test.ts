/** Each fault at each moment of an answer: whatever breaks, the call ends once, is told as the client saw it, and leaves nothing. */
import t, { type Test } from "tap"
import { ask, postHead, type RawClient, rawClient } from "../fixtures/client.ts"
import { until } from "../fixtures/until.ts"
import { chunked, type Exchange, type Handler, headOf, lastChunk, streamHead } from "../fixtures/vendor.ts"
import { openRelay, type Relay, sample, type Wire, wires } from "../fixtures/wires.ts"

interface Scene {
  readonly relay: Relay
  readonly client: RawClient
  /** The vendor's side of the first request. */
  readonly exchange: Exchange
}

const faults: Readonly<Record<string, (scene: Scene) => unknown>> = {
  "the client resets": ({ client }) => client.socket.resetAndDestroy(),
  "the vendor resets": ({ exchange }) => exchange.reset(),
  "the vendor speaks no HTTP": ({ exchange }) => exchange.send("\0what?\r\n\r\n").then(() => exchange.end()),
  "the model is taken away": ({ relay }) => relay.reload({ catalog: { models: {} } }),
  "the gateway stops": ({ relay }) => void relay.gateway.stop(),
}

/** A good answer in pieces, head first. */
const piecesOf = ({ events, whole }: Wire, stream: boolean): readonly Buffer[] => {
  const body = Buffer.from(whole)
  const pieces = stream
    ? [streamHead, ...events.map(event => chunked(event)), lastChunk]
    : [headOf({ body }), body.subarray(0, 20), body.subarray(20, -1), body.subarray(-1)]
  return pieces.map(piece => Buffer.from(piece))
}

/** Of pieces sent before the fault. */
const moments: Readonly<Record<string, (pieces: number) => number>> = {
  "before the head": () => 0,
  "behind the head": () => 1,
  "in the middle": pieces => pieces - 2,
  "before the last bytes": pieces => pieces - 1,
}

/** Stops at the moment until the fault happened; the requests after the first are answered at once. */
const vendorOf = (pieces: readonly Buffer[], sent: number) => {
  const there = Promise.withResolvers<Exchange>()
  const happened = Promise.withResolvers<void>()
  let asked = 0
  const send = async (exchange: Exchange, some: readonly Buffer[]): Promise<void> => {
    if (!exchange.socket.writableEnded) await exchange.send(Buffer.concat(some))
  }
  const handler: Handler = async exchange => {
    asked += 1
    if (asked > 1) return send(exchange, pieces)
    await send(exchange, pieces.slice(0, sent))
    there.resolve(exchange)
    await happened.promise
    await send(exchange, pieces.slice(sent))
  }
  return { handler, there: there.promise, happened: happened.resolve }
}

/** How the client knows the answer to end: `whole` by its framing. */
const seenBy = (client: RawClient, stream: boolean) => {
  const [head = "", ...rest] = client.received().split("\r\n\r\n")
  const body = rest.join("\r\n\r\n")
  const length = /^content-length: (\d+)$/im.exec(head)?.[1]
  const isWhole = length === undefined ? body.endsWith(lastChunk) : body.length === Number(length)
  const isGood = stream && !body.includes("shutting down") ? /message_stop|\[DONE\]/.test(body) : isWhole
  return { status: Number(head.split(" ")[1]), isWhole, isGood, isError: /"error":\s*\{/.test(body) }
}

const sumOf = (metrics: string, name: string): number =>
  metrics
    .split("\n")
    .filter(line => line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)

const endOf = async (relay: Relay): Promise<string> => {
  await relay.spent() // nothing is in flight or held
  const metrics = await relay.metrics()
  await until(async () => sample(await relay.metrics(), "tollgate_body_bytes_in_flight") === 0)
  return metrics
}

const play = async (t: Test, wire: Wire, stream: boolean, fault: string, moment: string): Promise<void> => {
  const pieces = piecesOf(wire, stream)
  const vendor = vendorOf(pieces, moments[moment]!(pieces.length))
  const relay = await openRelay(t, vendor.handler, { gateway: { shutdown: "20ms" } })
  const client = await rawClient(t, relay.url)
  const path = new URL(relay.url + wire.path(stream)).pathname
  const body = JSON.stringify(wire.request(stream))
  client.write(postHead(path, [`content-length: ${body.length}`]) + body)
  await faults[fault]!({ relay, client, exchange: await vendor.there })
  const stops = fault === "the gateway stops"
  if (stops) await relay.gateway.stop()
  vendor.happened()
  const metrics = stops ? undefined : await endOf(relay)
  const calls = relay.lines.filter(({ msg }) => msg === "call")
  t.equal(calls.length, 1, "one line")
  const { status, outcome } = calls[0] as { status: number; outcome: string }
  if (metrics !== undefined) {
    t.equal(sumOf(metrics, "tollgate_http_requests_total"), 1)
    t.equal(sumOf(metrics, "tollgate_errors_total"), outcome === "delivered" ? 0 : 1)
    t.equal(sumOf(metrics, "tollgate_plugin_errors_total"), 0)
  }
  if (!fault.startsWith("the client")) {
    await until(() => seenBy(client, stream).isWhole)
    const seen = seenBy(client, stream)
    t.equal(seen.status, status)
    t.ok(
      outcome === "delivered" ? seen.isGood : seen.isError,
      `${outcome}: ${JSON.stringify(client.received().slice(-200))}`,
    )
  }
  if (stops || fault === "the model is taken away") return
  t.equal((await ask(relay.url + wire.path(stream), wire.request(stream))).status, 200, "the next one is served")
}

for (const wire of [wires.messages, wires.chat]) {
  for (const stream of [false, true]) {
    for (const fault of Object.keys(faults)) {
      t.test(`${wire.name}, ${stream ? "streamed" : "whole"}: ${fault}`, async t => {
        for (const moment of Object.keys(moments)) await t.test(moment, t => play(t, wire, stream, fault, moment))
      })
    }
  }
}
