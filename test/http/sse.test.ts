/** Streams of server-sent events, cut anywhere. */
import fc from "fast-check"
import t from "tap"
import { SseSplitter } from "../../core/http/sse.ts"
import { recorded } from "../fixtures/recorded.ts"

interface Event {
  readonly type?: string
  readonly data: string
}

const split = (chunks: readonly Buffer[], maxEventBytes = 1_000_000) => {
  const events: Event[] = []
  let overflows = 0
  const splitter = new SseSplitter(event => events.push({ ...event, data: event.data.toString() }), {
    maxEventBytes,
    onOverflow: () => overflows++,
  })
  for (const chunk of chunks) splitter.push(chunk)
  splitter.end()
  return { events, overflows }
}

const cut = (bytes: Buffer, size: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size))

const eventsOf = (text: string): readonly Event[] => split([Buffer.from(text)]).events

// ---- what the format allows (WHATWG HTML, section 9.2) ----

const oddities: Readonly<Record<string, readonly [stream: string, events: readonly Event[]]>> = {
  "comments say nothing": [": ping\n\n:\n\ndata: a\n: between\n\n", [{ data: "a" }]],
  "the space after the colon is optional, and only one is taken": [
    "data:a\n\ndata: b\n\ndata:  c\n\n",
    [{ data: "a" }, { data: "b" }, { data: " c" }],
  ],
  "several data lines are one text": ["data: {\ndata: }\n\n", [{ data: "{\n}" }]],
  "a data line may be empty, and may lack its colon": ["data\n\ndata:\ndata\n\n", [{ data: "" }, { data: "\n" }]],
  "CRLF ends lines": ["event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [{ type: "x", data: "a" }, { data: "b" }]],
  "CR ends lines": ["event: x\rdata: a\r\rdata: b\r\r", [{ type: "x", data: "a" }, { data: "b" }]],
  "line ends may be mixed": ["data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", [{ data: "a" }, { data: "b" }, { data: "c" }]],
  "a byte order mark is skipped": ["\uFEFFdata: a\n\n", [{ data: "a" }]],
  "the last blank line may be missing": ["data: a\n\ndata: [DONE]", [{ data: "a" }, { data: "[DONE]" }]],
  "even the last line end may be": ["data: a\n\ndata: b\n", [{ data: "a" }, { data: "b" }]],
  "unknown fields and event names pass": [
    "id: 7\nretry: 1\nevents: no\nevent: new.kind\ndata: a\n\n",
    [{ type: "new.kind", data: "a" }],
  ],
  "a type without data is no event, and is not kept": ["event: lost\n\ndata: a\n\n", [{ data: "a" }]],
  "an empty type is none": ["event:\ndata: a\n\n", [{ data: "a" }]],
  "names that only begin alike are other fields": ["database: x\ndat: y\neventual: z\ndata: a\n\n", [{ data: "a" }]],
  "the end marker is data like any other": ["data: [DONE] \n\n", [{ data: "[DONE] " }]],
  "nothing is nothing": ["", []],
  "line ends alone are nothing": ["\n\n\r\n\r\r", []],
}

for (const [name, [stream, expected]] of Object.entries(oddities)) {
  t.test(name, async t => {
    const bytes = Buffer.from(stream)
    t.same(split([bytes]).events, expected, "in one piece")
    t.same(split(cut(bytes, 1)).events, expected, "byte by byte")
    for (let at = 1; at < bytes.length; at++) {
      t.same(split([bytes.subarray(0, at), bytes.subarray(at)]).events, expected, `cut at ${at}`)
    }
  })
}

t.test("an event is delivered at its blank line, not with the next event", async t => {
  const seen: string[] = []
  const splitter = new SseSplitter(event => seen.push(event.data.toString()), { maxEventBytes: 99, onOverflow() {} })
  splitter.push(Buffer.from("data: a\r\n\r"))
  t.same(seen, ["a"], "the CR of a CRLF is enough")
  splitter.push(Buffer.from("\ndata: b\n\n"))
  t.same(seen, ["a", "b"])
})

t.test("an event inside one chunk is handed over without a copy", async t => {
  const chunk = Buffer.from("data: abc\n\n")
  const splitter = new SseSplitter(event => t.equal(event.data.buffer, chunk.buffer), {
    maxEventBytes: 99,
    onOverflow() {},
  })
  t.plan(1)
  splitter.push(chunk)
})

t.test("recorded text of many alphabets survives a cut at any byte", async t => {
  const [answer] = recorded("azure-responses", "azure-deepseek-reasoning.1.chunks.txt")
  const body = answer?.body ?? Buffer.alloc(0)
  const stream = Buffer.concat([Buffer.from("data: 漢字かな 한국어 🧡💙 naïve\n\n"), body.subarray(-3_000)])
  const { events } = split([stream])
  t.ok(events.some(event => event.data.includes("🧡💙")))
  for (let at = 0; at <= stream.length; at++) {
    const found = split([stream.subarray(0, at), stream.subarray(at)]).events
    if (JSON.stringify(found) !== JSON.stringify(events)) t.fail(`cut at ${at}`)
  }
  t.notOk(events.some(event => event.data.includes("\uFFFD")))
})

// ---- events that are too large ----

t.test("an event over the bound is skipped to its end, once, and the next one is seen", async t => {
  const large = `data: ${"x".repeat(200)}\n`
  const stream = Buffer.from(`data: a\n\n${large}${large}\ndata: b\n\ndata: ${"y".repeat(101)}\n\ndata: c\n\n`)
  for (const size of [1, 7, 64, stream.length]) {
    const { events, overflows } = split(cut(stream, size), 100)
    t.same(events, [{ data: "a" }, { data: "b" }, { data: "c" }], `in chunks of ${size}`)
    t.equal(overflows, 2)
  }
})

t.test("a large event ends with any line ends", async t => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const stream = Buffer.from(`data: ${"x".repeat(300)}${end}${end}data: b${end}${end}`)
    for (const size of [1, 3, 50, stream.length]) {
      t.same(split(cut(stream, size), 100), { events: [{ data: "b" }], overflows: 1 }, JSON.stringify([end, size]))
    }
  }
})

t.test("half a gigabyte without a blank line takes no memory", async t => {
  let overflows = 0
  let events = 0
  const splitter = new SseSplitter(() => events++, { maxEventBytes: 1_048_576, onOverflow: () => overflows++ })
  const chunk = Buffer.alloc(65_536, "data: endless text\n")
  const before = process.memoryUsage().rss
  for (let sent = 0; sent < 536_870_912; sent += chunk.length) splitter.push(chunk)
  t.ok(process.memoryUsage().rss - before < 33_554_432)
  splitter.push(Buffer.from("\n\ndata: b\n\n"))
  splitter.end()
  t.same({ overflows, events }, { overflows: 1, events: 1 })
})

t.test("comments without end are not kept", async t => {
  const { events, overflows } = split(
    [...Array(100).fill(Buffer.from(": keep-alive\n")), Buffer.from("data: a\n\n")],
    50,
  )
  t.same({ events, overflows }, { events: [{ data: "a" }], overflows: 0 })
})

// ---- any stream, any cuts ----

const word = fc.string({ unit: "grapheme", maxLength: 12 }).map(text => text.replace(/[\r\n\uFEFF]/g, ""))
const event = fc.record({
  type: fc.option(word, { nil: undefined }),
  lines: fc.array(word, { minLength: 1, maxLength: 3 }),
  noise: fc.constantFrom("", ": comment", "id: 1", "retry: 10", "unknown"),
  space: fc.boolean(),
})

t.test("any events, any line ends, any cuts", async t => {
  const property = fc.property(
    fc.array(event, { maxLength: 8 }),
    fc.constantFrom("\n", "\r\n", "\r"),
    fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
    fc.boolean(),
    (events, end, sizes, mark) => {
      const stream = events.map(({ type, lines, noise, space }) => {
        const value = (text: string) => (space || text.startsWith(" ") ? ` ${text}` : text)
        const named = type === undefined ? [] : [`event:${value(type)}`]
        const data = lines.map(line => `data:${value(line)}`)
        return [...(noise === "" ? [] : [noise]), ...named, ...data, "", ""].join(end)
      })
      const bytes = Buffer.from(`${mark ? "\uFEFF" : ""}${stream.join("")}`)
      const chunks: Buffer[] = []
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1
        chunks.push(bytes.subarray(at, at + size))
        at += size
      }
      const expected = events.map(({ type, lines }) => ({ ...(type ? { type } : {}), data: lines.join("\n") }))
      const found = split(chunks)
      return found.overflows === 0 && JSON.stringify(found.events) === JSON.stringify(expected)
    },
  )
  fc.assert(property, { numRuns: 400 })
  t.same(eventsOf("data: a\n\n"), [{ data: "a" }])
})
