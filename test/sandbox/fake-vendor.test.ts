import { createHash } from "node:crypto"
import { connect } from "node:net"
import t from "tap"
import { answering, fakeVendor, refusedOrigin, streaming } from "../fixtures/vendor.ts"
import * as faults from "../fixtures/vendor-faults.ts"
import { refusalOf } from "./helpers.ts"

t.test("a request is recorded as it came, and answered byte by byte", async t => {
  const vendor = await fakeVendor(t, answering({ status: 201, headers: { "x-one": "1" }, body: "naïve" }, { size: 1 }))
  const body = "a".repeat(100_000)
  const answer = await fetch(`${vendor.origin}/path?q=1`, { method: "POST", body, headers: { "X-Two": "2" } })
  t.equal(answer.status, 201)
  t.equal(answer.headers.get("x-one"), "1")
  t.equal(await answer.text(), "naïve")
  const request = await vendor.next()
  t.match(request, { method: "POST", target: "/path?q=1", headers: { "x-two": "2" }, connection: 1 })
  t.match(request.head, /^POST \/path\?q=1 HTTP\/1\.1\r\n(?:[^\r\n]+\r\n)+$/)
  t.equal(request.sha256, createHash("sha256").update(body).digest("hex"))
})

t.test("a body in chunked coding, and two requests in one write, are told apart", async t => {
  const vendor = await fakeVendor(t)
  const socket = connect(Number(new URL(vendor.origin).port), "127.0.0.1")
  t.teardown(() => socket.destroy())
  socket.write(
    "POST /1 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /2 HTTP/1.1\r\n\r\n",
  )
  t.match(await vendor.next(), { target: "/1", body: Buffer.from("abcde") })
  t.match(await vendor.next(), { target: "/2", body: Buffer.alloc(0), connection: 1 })
})

t.test("a stream goes on when the test says so", async t => {
  const gate = Promise.withResolvers<void>()
  const vendor = await fakeVendor(t, streaming("data: 1\n\ndata: 2\n\n", { size: 9, between: () => gate.promise }))
  const reader = (await fetch(vendor.origin)).body!.getReader()
  const text = async (): Promise<string> => Buffer.from((await reader.read()).value ?? []).toString()
  t.equal(await text(), "data: 1\n\n")
  gate.resolve()
  t.equal(await text(), "data: 2\n\n")
  t.equal(await text(), "")
})

t.test("an early script sees the head before the body", async t => {
  const seen = Promise.withResolvers<string>()
  const vendor = await fakeVendor(t, undefined, { early: ({ request }) => seen.resolve(request.target) })
  const socket = connect(Number(new URL(vendor.origin).port), "127.0.0.1")
  t.teardown(() => socket.destroy())
  socket.write("POST /early HTTP/1.1\r\ncontent-length: 5\r\n\r\n")
  t.equal(await seen.promise, "/early")
  t.same(vendor.requests, [])
})

t.test("each fault is one that a client notices", async t => {
  const answer = { body: '{"some":"text that is long enough"}' }
  const failing = {
    resetBeforeHead: faults.resetBeforeHead,
    endBeforeHead: faults.endBeforeHead,
    resetAfterHead: faults.resetAfterHead(answer),
    resetInBody: faults.resetInBody(answer, 5),
    endInBody: faults.endInBody(answer, 5),
    wrongLength: faults.wrongLength(answer, 3),
    garbage: faults.garbage,
    unaskedUpgrade: faults.unaskedUpgrade,
    oversizedHead: faults.oversizedHead(200_000),
  }
  for (const [name, script] of Object.entries(failing)) {
    const { origin } = await fakeVendor(t, script)
    t.match(await refusalOf(fetch(origin).then(answer => answer.text())), Error, name)
  }
  t.match(await refusalOf(fetch(await refusedOrigin())), { cause: { code: "ECONNREFUSED" } })
})

t.test("faults that a client survives", async t => {
  const body = '{"fine":true}'
  const fine = {
    gzipped: faults.gzipped({ body }),
    informational: faults.informational(3, answering({ body })),
    strayAnswer: faults.strayAnswer({ body }),
    inTurn: faults.inTurn(answering({ body }), faults.garbage),
  }
  for (const [name, script] of Object.entries(fine)) {
    const { origin } = await fakeVendor(t, script)
    t.equal(await (await fetch(origin)).text(), body, name)
  }
})

t.test("an endless event ends when the client leaves", async t => {
  const left = Promise.withResolvers<void>()
  const vendor = await fakeVendor(t, async exchange => {
    await faults.endlessEvent()(exchange)
    left.resolve()
  })
  const leave = new AbortController()
  const answer = await fetch(vendor.origin, { signal: leave.signal })
  t.match(await answer.body!.getReader().read(), { done: false })
  leave.abort()
  await left.promise
  t.equal(vendor.requests.length, 1)
})
