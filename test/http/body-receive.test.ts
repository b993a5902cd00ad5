import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerOptions } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import t, { type Test } from "tap"
import { createByteBudget, type ReceivedBody, type ReceiveOptions, receiveBody } from "../../core/http/body.ts"
import { sha256 } from "../fixtures/client.ts"

type Result = PromiseSettledResult<ReceivedBody>

interface Side {
  /** A connection on which a request's head was sent, and the request as it arrived. */
  send(
    head: string,
    allowHalfOpen?: boolean,
  ): Promise<{ socket: Socket; request: IncomingMessage; result: Promise<Result> }>
  readonly options: ReceiveOptions & { readonly gauge: { value: number } }
}

const listen = async (
  t: Test,
  limits: { maxBytes: number; budget?: number },
  serverOptions: ServerOptions = {},
  prepare: (server: Server) => void = () => {},
): Promise<Side> => {
  const gauge = {
    value: 0,
    add(bytes: number) {
      this.value += bytes
    },
  }
  const options = { maxBytes: limits.maxBytes, budget: createByteBudget(() => limits.budget ?? 1e9), gauge }
  const http: Server = createServer(serverOptions)
  prepare(http)
  http.listen(0, "127.0.0.1")
  await once(http, "listening")
  t.teardown(() => {
    http.closeAllConnections()
    http.close()
  })
  const send: Side["send"] = async (head, allowHalfOpen = false) => {
    const socket = connect({ port: (http.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen })
    t.teardown(() => socket.destroy())
    socket.on("error", () => {}) // cut connections are what is tested
    const arrived = once(http, "request") as Promise<[IncomingMessage]>
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${head}\r\n`)
    const [request] = await arrived
    const result = Promise.allSettled([receiveBody(request, options)]).then(([one]) => one as Result)
    return { socket, request, result }
  }
  return { send, options }
}

const failure = async (result: Promise<Result>): Promise<{ code: string; message: string; headers: object }> => {
  const settled = await result
  return settled.status === "rejected" ? settled.reason : { code: "received", message: "", headers: {} }
}

const received = async (result: Promise<Result>): Promise<ReceivedBody> => {
  const settled = await result
  if (settled.status === "rejected") throw settled.reason
  return settled.value
}

const tick = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

t.test("the memory of a piece goes back when it was copied; a body of one piece is that piece", async t => {
  const { send } = await listen(t, { maxBytes: 1e7 })
  for (const [size, left] of [
    [300_000, 0],
    [1000, 1000],
  ] as const) {
    const body = randomBytes(size)
    const { socket, request, result } = await send(`Content-Length: ${size}\r\n`)
    const pieces: Buffer[] = []
    request.on("data", piece => pieces.push(piece)) // hears of it after the receiver
    socket.write(body)
    const { bytes } = await received(result)
    t.equal(sha256(bytes), sha256(body))
    t.same([...new Set(pieces.map(piece => piece.length))], [left], `${pieces.length} of ${size} bytes`)
  }
})

t.test("a body arrives whole and unchanged, in one buffer, in pieces of any size", async t => {
  const { send } = await listen(t, { maxBytes: 1e7 })
  for (const [size, piece] of [
    [1, 1],
    [50, 7],
    [1000, 1000],
    [300_000, 4099],
    [2_000_000, 1_999_999],
  ] as const) {
    const sent = randomBytes(size)
    for (const chunked of [false, true]) {
      const { socket, result } = await send(chunked ? "Transfer-Encoding: chunked\r\n" : `Content-Length: ${size}\r\n`)
      for (let at = 0; at < size; at += piece) {
        const part = sent.subarray(at, at + piece)
        if (chunked) socket.write(`${part.length.toString(16)}\r\n`)
        socket.write(part)
        if (chunked) socket.write("\r\n")
        if (size <= 50) await tick()
      }
      if (chunked) socket.write("0\r\n\r\n")
      const { bytes } = await received(result)
      t.equal(sha256(bytes), sha256(sent), `${size} bytes, ${chunked ? "chunked" : "declared"}`)
    }
  }
})

t.test("no body is an empty one", async t => {
  const { send } = await listen(t, { maxBytes: 10 })
  const without = await send("")
  t.equal((await received(without.result)).bytes.length, 0)
  const empty = await send("Content-Length: 0\r\n")
  t.equal((await received(empty.result)).bytes.length, 0)
})

t.test("the boundary passes; one byte more is 413, declared or counted", async t => {
  const { send, options } = await listen(t, { maxBytes: 1000 })
  const exact = await send("Content-Length: 1000\r\n")
  exact.socket.write(Buffer.alloc(1000))
  t.equal((await received(exact.result)).bytes.length, 1000)
  const counted = await send("Transfer-Encoding: chunked\r\n")
  counted.socket.write(`3e8\r\n${"x".repeat(1000)}\r\n`)
  counted.socket.write("0\r\n\r\n")
  t.equal((await received(counted.result)).bytes.length, 1000)
  const used = options.budget.used
  const declared = await send("Content-Length: 1001\r\n")
  t.match(await failure(declared.result), { code: "body_too_large", message: /Maximum size is 1000 bytes\.$/ })
  const more = await send("Transfer-Encoding: chunked\r\n")
  more.socket.write(`3e9\r\n${"x".repeat(1001)}\r\n`)
  t.match(await failure(more.result), { code: "body_too_large" })
  t.equal(options.budget.used, used, "refused bodies hold nothing")
})

t.test("the text of a 413 is the specification's", async t => {
  const { send } = await listen(t, { maxBytes: 25 * 1024 * 1024 })
  const { result } = await send(`Content-Length: ${25 * 1024 * 1024 + 1}\r\n`)
  t.match(await failure(result), { message: "Request body too large. Maximum size is 25MB." })
})

t.test("a declared length takes no memory before its bytes come", async t => {
  const { send, options } = await listen(t, { maxBytes: 25 * 1024 * 1024 })
  const { socket, request, result } = await send(`Content-Length: ${25 * 1024 * 1024}\r\n`)
  t.equal(options.budget.used, 0)
  const arrived = once(request, "data")
  socket.write("x")
  await arrived
  t.ok(options.budget.used <= 64 * 1024)
  socket.destroy()
  t.match(await failure(result), { code: "client_left" })
})

t.test("what does not fit into the budget is shed, and leaves the others alone", async t => {
  const { send, options } = await listen(t, { maxBytes: 300_000, budget: 500_000 })
  const first = await send("Content-Length: 300000\r\n")
  first.socket.write(Buffer.alloc(300_000))
  const body = await received(first.result)
  const second = await send("Content-Length: 300000\r\n")
  second.socket.write(Buffer.alloc(300_000))
  t.match(await failure(second.result), { code: "shed", headers: { "retry-after": "1" } })
  t.equal(options.budget.used, 300_000)
  body.done()
  const third = await send("Content-Length: 300000\r\n")
  third.socket.write(Buffer.alloc(300_000))
  t.equal((await received(third.result)).bytes.length, 300_000)
})

t.test("the budget and the gauge get a body's bytes back exactly once", async t => {
  const { send, options } = await listen(t, { maxBytes: 1e6 })
  const { socket, result } = await send("Content-Length: 5\r\n")
  socket.write("hello")
  const { done } = await received(result)
  t.equal(options.budget.used, 5)
  t.equal(options.gauge.value, 5)
  done()
  done()
  t.equal(options.budget.used, 0)
  t.equal(options.gauge.value, 0)
})

t.test("a client that leaves midway ends the wait, and its bytes are given back", async t => {
  const { send, options } = await listen(t, { maxBytes: 1e6 })
  for (const head of ["Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n"]) {
    for (const leave of ["destroy", "resetAndDestroy", "end"] as const) {
      const { socket, request, result } = await send(head)
      const arrived = once(request, "data")
      socket.write("5\r\nhello\r\n")
      await arrived
      socket[leave]()
      t.match(await failure(result), { code: "client_left" }, `${head.trim()} ${leave}`)
    }
  }
  t.equal(options.budget.used, 0)
  t.equal(options.gauge.value, 0)
})

t.test("a client that left before the body was asked for is found out", async t => {
  const { send, options } = await listen(t, { maxBytes: 1e6 })
  const { socket, request, result } = await send("Content-Length: 1000\r\n")
  socket.destroy()
  await failure(result)
  await t.rejects(receiveBody(request, options), { code: "client_left" })
})

t.test("a sender slower than the server's request timeout ends the wait", async t => {
  const slow = { requestTimeout: 20, headersTimeout: 20, connectionsCheckingInterval: 5 }
  const { send, options } = await listen(t, { maxBytes: 1e6 }, slow)
  const { socket, result } = await send("Content-Length: 1000\r\n")
  socket.write("a few")
  t.match(await failure(result), { code: "client_left" })
  t.equal(options.budget.used, 0)
})

t.test("so does one that sends on after the server answered and ended its side", async t => {
  const slow = { requestTimeout: 20, headersTimeout: 20, connectionsCheckingInterval: 5 }
  const ended = (server: Server) => server.on("clientError", (_error, socket) => socket.end("HTTP/1.1 408\r\n\r\n"))
  const { send } = await listen(t, { maxBytes: 1e6 }, slow, ended)
  const { socket, result } = await send("Content-Length: 1000\r\n", true)
  socket.write("a few")
  t.match(await failure(result), { code: "client_left" })
})

t.test("a broken chunk ends the wait", async t => {
  const { send } = await listen(t, { maxBytes: 1e6 })
  const { socket, result } = await send("Transfer-Encoding: chunked\r\n")
  socket.write("zz\r\nhello\r\n")
  t.match(await failure(result), { code: "client_left" })
})

t.test("a coded body is 415 before any byte of it is read", async t => {
  const { send, options } = await listen(t, { maxBytes: 1e6 })
  for (const coding of ["gzip", "br", "identity, gzip", ""]) {
    const { result } = await send(`Content-Encoding: ${coding}\r\nContent-Length: 5\r\n`)
    t.match(await failure(result), { code: "unsupported_media_type" }, coding)
  }
  t.equal(options.budget.used, 0)
})

t.test("a settled body leaves no listener on its request", async t => {
  const { send } = await listen(t, { maxBytes: 1e6 })
  const { socket, request, result } = await send("Content-Length: 5\r\n")
  const before = request.listenerCount("close")
  socket.write("hello")
  await received(result)
  t.equal(request.listenerCount("data"), 0)
  t.equal(request.listenerCount("error"), 0)
  t.ok(request.listenerCount("close") < before)
})
