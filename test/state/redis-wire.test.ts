import { duplexPair } from "node:stream"
import { setImmediate as turn } from "node:timers/promises"
import { isDeepStrictEqual } from "node:util"
import fc from "fast-check"
import { type Test, t } from "tap"
import { RedisError, type Reply, ReplyReader } from "../../core/state/redis/replies.ts"
import { Wire } from "../../core/state/redis/wire.ts"

const encoded = (reply: Reply): string => {
  if (reply === null) return "$-1\r\n"
  if (reply instanceof RedisError) return `-${reply.message}\r\n`
  if (typeof reply === "number") return `:${reply}\r\n`
  if (typeof reply === "string") return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`
  return `*${reply.length}\r\n${reply.map(encoded).join("")}`
}

const { reply: anyReply } = fc.letrec<{ reply: Reply }>(tie => ({
  reply: fc.oneof(
    { maxDepth: 3 },
    fc.string({ unit: "grapheme", maxLength: 40 }),
    fc.maxSafeInteger().map(number => number + 0), // there is no minus nothing on the wire
    fc.constant(null),
    fc.array(tie("reply"), { maxLength: 5 }),
  ),
}))

const readAll = (chunks: readonly Buffer[]): readonly Reply[] => {
  const found: Reply[] = []
  const reader = new ReplyReader(reply => found.push(reply))
  for (const chunk of chunks) reader.read(chunk)
  return found
}

const cut = (bytes: Buffer, sizes: readonly number[]): readonly Buffer[] => {
  const chunks: Buffer[] = []
  let at = 0
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length]!
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

t.test("answers are the same however their bytes are cut", async t => {
  const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 })
  const property = fc.property(fc.array(anyReply, { maxLength: 8 }), sizes, (replies, sizes) =>
    isDeepStrictEqual(readAll(cut(Buffer.from(replies.map(encoded).join("")), sizes)), replies),
  )
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300 })) // the error says seed and path
})

t.test("a null list, a short string and an error are answers too, one byte at a time", async t => {
  const bytes = Buffer.from("*-1\r\n+OK\r\n-NOSCRIPT No matching script.\r\n*2\r\n*0\r\n:-7\r\n")
  const [none, short, error, list, ...more] = readAll(cut(bytes, [1]))
  t.strictSame([none, short, list, more], [null, "OK", [[], -7], []])
  t.ok(error instanceof RedisError)
  t.match(error, { message: "NOSCRIPT No matching script." })
})

t.test("a large answer that comes in many pieces is put together once", async t => {
  const text = "x".repeat(4_000_000)
  t.ok(readAll(cut(Buffer.from(encoded([text, text])), [65_536])).every(reply => (reply as string[])[1] === text))
})

t.test("bytes that are no answer are an error", async t => {
  t.throws(() => readAll([Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")]), { message: /something else/ })
})

/** A wire, the other end of its connection, and what happened to each question. */
const openWire = (t: Test) => {
  const [near, far] = duplexPair()
  t.teardown(() => [near.destroy(), far.destroy()])
  const events: string[] = []
  const wire = new Wire(near, error => void events.push(`broken ${error.message}`))
  const received: string[] = []
  far.on("data", chunk => received.push(String(chunk)))
  const ask = (label: string, name: string, ...words: readonly (string | number)[]) =>
    wire.ask(name, words, {
      answered: reply => events.push(`${label} ${JSON.stringify(reply)}`),
      failed: error => events.push(`${label} failed: ${(error as Error).message}`),
    })
  const answer = async (bytes: string) => {
    far.write(bytes)
    await turn()
  }
  return { near, wire, ask, answer, events, received }
}

t.test("the commands of one turn leave in one piece, their words counted in bytes", async t => {
  const { ask, received } = openWire(t)
  ask("a", "SET", "name", "é€")
  ask("b", "PING")
  ask("c", "PEXPIRE", "", 12.5)
  t.same(received, [])
  await turn()
  await turn()
  t.same(received, [
    "*3\r\n$3\r\nSET\r\n$4\r\nname\r\n$5\r\né€\r\n*1\r\n$4\r\nPING\r\n*3\r\n$7\r\nPEXPIRE\r\n$0\r\n\r\n$4\r\n12.5\r\n",
  ])
})

t.test("answers come to those who asked, in their order, and a refusal to its own asker only", async t => {
  const { ask, answer, events } = openWire(t)
  for (const label of ["a", "b", "c"]) ask(label, "GET", label)
  await answer("+1\r\n-READONLY You ")
  ask("d", "GET", "d")
  await answer("can't write\r\n*1\r\n:3\r\n$-1\r\n")
  t.same(events, ['a "1"', "b failed: READONLY You can't write", "c [3]", "d null"])
})

t.test("thousands of questions under way at once keep their order", async t => {
  const { ask, answer, events } = openWire(t)
  for (let at = 0; at < 5_000; at += 1) ask(`q${at}`, "GET", at)
  for (let at = 0; at < 5_000; at += 500) {
    await answer(Array.from({ length: 500 }, (_, part) => `:${at + part}\r\n`).join(""))
    ask(`late${at}`, "GET", at)
  }
  t.same(
    events,
    Array.from({ length: 5_000 }, (_, at) => `q${at} ${at}`),
  )
})

t.test("a connection that is gone fails what was asked, and what is asked after", async t => {
  const { wire, ask, answer, events } = openWire(t)
  ask("answered", "GET", "a")
  ask("open", "GET", "b")
  await answer("+yes\r\n")
  ask("unsent", "GET", "c")
  wire.close(new Error("cut"))
  wire.close(new Error("again"))
  ask("after", "GET", "d")
  t.same(events, ['answered "yes"', "open failed: cut", "unsent failed: cut", "after failed: cut"])
})

t.test("a connection that is ending takes no more questions, but its answers are heard", async t => {
  const { near, ask, answer, events } = openWire(t)
  ask("before", "GET", "a")
  await turn()
  near.end()
  ask("after", "GET", "b")
  await answer("+yes\r\n")
  t.same(events, ["after failed: The connection to Redis is ending", 'before "yes"'])
})

t.test("an answer to no question and bytes of another protocol say that the connection is of no use", async t => {
  const one = openWire(t)
  await one.answer("+OK\r\n")
  t.same(one.events, ["broken Redis answered what nobody asked"])
  const other = openWire(t)
  other.ask("a", "GET", "a")
  await other.answer("<html>\r\n")
  t.match(other.events, [/^broken Redis answered with something else/])
})
