/** Stop sequences that chat has no room for: found in the answer, wherever the vendor's chunks end. */
import fc from "fast-check"
import t from "tap"
import { type JsonObject, record } from "../../core/index.ts"
import { MessageEvents, stopsBeyond, wholeMessage } from "../../plugins/messages/hub/index.ts"
import { Stops } from "../../plugins/messages/hub/stops.ts"
import { eventsOf } from "../fixtures/metering.ts"

const headOf = (stops: readonly string[]) => ({ id: "msg_1", model: "m", estimatedInput: 1, stops })
const pushed = (stops: readonly string[], pieces: readonly string[]) => {
  const cut = new Stops(stops)
  const text = pieces.map(piece => cut.push(piece)).join("") + cut.flush()
  return { text, matched: cut.matched }
}

/** The same by brute force: letter by letter, as a model writes. */
const letterByLetter = (stops: readonly string[], text: string) => {
  for (let end = 1; end <= text.length; end += 1) {
    const matched = stops.filter(stop => text.slice(0, end).endsWith(stop)).toSorted((a, b) => b.length - a.length)[0]
    if (matched !== undefined) return { text: text.slice(0, end - matched.length), matched }
  }
  return { text, matched: undefined }
}

t.test("the answer ends before the sequence that is complete first, however the text comes in pieces", async t => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "é", "\n"), maxLength: 12 })
  const sequence = fc.string({ unit: fc.constantFrom("a", "b", "é", "\n"), minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(fc.uniqueArray(sequence, { minLength: 1, maxLength: 4 }), fc.array(letters), (stops, pieces) => {
      t.same(pushed(stops, pieces), letterByLetter(stops, pieces.join("")))
    }),
  )
})

t.test("without such sequences nothing is held back", async t => {
  const cut = new Stops([])
  t.equal(cut.push("all of it"), "all of it")
  t.equal(cut.flush(), "")
  const usual = { rules: {} }
  t.same(stopsBeyond({ stop_sequences: ["a", "", "b", "c", "d", "e", 5, "f"] }, usual), ["e", "f"])
  t.same(stopsBeyond({ stop_sequences: ["a"] }, usual), [])
  t.same(stopsBeyond({}, usual), [])
})

t.test("a model that refuses stop sequences is told none: all are looked for here", async t => {
  const refusing = { rules: { refuse: ["top_p", "stop"] } }
  t.same(stopsBeyond({ stop_sequences: ["a", "b"] }, refusing), ["a", "b"])
  t.same(stopsBeyond({}, refusing), [])
})

const call = { index: 0, id: "a", function: { name: "look", arguments: "{}" } }
const chunk = (delta: JsonObject, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
})
const streamed = (stops: readonly string[], ...deltas: readonly JsonObject[]) => {
  const events = new MessageEvents(headOf(stops))
  const text = [...deltas.map(delta => events.push(chunk(delta))), events.push(chunk({}, "stop")), events.end()].join(
    "",
  )
  const all = eventsOf(Buffer.from(text)).map(({ data }) => JSON.parse(data.toString()) as JsonObject)
  const said = all.map(({ delta }) => record(delta).text ?? "").join("")
  const kinds = all.flatMap(({ content_block }) => (content_block === undefined ? [] : [record(content_block).type]))
  const { stop_reason, stop_sequence } = record(all.find(({ type }) => type === "message_delta")?.delta)
  return { said, kinds, stop_reason, stop_sequence }
}

t.test("a stream is cut, says by what, and tells nothing that came after", async t => {
  const cut = { said: "One ", kinds: ["text"], stop_reason: "stop_sequence", stop_sequence: "END" }
  t.same(streamed(["END"], { content: "One E" }, { content: "ND two" }, { content: " three", tool_calls: [call] }), cut)
  t.same(streamed(["END"], { content: "One END" }, { reasoning_content: "Hm." }, { refusal: "No." }), cut)
  const whole = { said: "One E", kinds: ["text"], stop_reason: "end_turn", stop_sequence: null }
  t.same(streamed(["END"], { content: "One E" }), whole, "what was held back is not lost")
  const called = { said: "One E", kinds: ["text", "tool_use"], stop_reason: "tool_use", stop_sequence: null }
  t.same(streamed(["END"], { content: "One E" }, { tool_calls: [call] }), called, "nor before a call")
})

t.test("a whole answer likewise", async t => {
  const answer = (content: string) =>
    wholeMessage(
      { choices: [{ message: { content, tool_calls: [call] }, finish_reason: "tool_calls" }] },
      headOf(["END", "STOP"]),
    )
  t.match(answer("One STOP two END"), {
    content: [{ type: "text", text: "One " }],
    stop_reason: "stop_sequence",
    stop_sequence: "STOP",
  })
  t.match(answer("END"), { content: [], stop_reason: "stop_sequence", stop_sequence: "END" })
  t.match(answer("One"), {
    content: [{ text: "One" }, { type: "tool_use" }],
    stop_reason: "tool_use",
    stop_sequence: null,
  })
})
