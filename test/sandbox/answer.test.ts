import fc from "fast-check"
import t from "tap"
import { answerTo, type Prompt, piecesOf, slicesOf } from "../../plugins/sandbox/answer.ts"
import { exampleOf } from "../../plugins/sandbox/example.ts"
import { estimateTokens, firstTokens, inputTokens } from "../../plugins/sandbox/tokens.ts"

const anyText = fc.string({ unit: "grapheme" })
const prompt: Prompt = { question: "", tools: [], toolChoice: "free", maxTokens: Infinity, stop: [], thinks: false }

t.test("pieces and slices join to the text", async () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 9 }), (text, length) => {
      return piecesOf(text).join("") === text && slicesOf(text, length).join("") === text
    }),
  )
})

t.test("a beginning counts no more than its limit and is cut between characters", async () => {
  fc.assert(
    fc.property(anyText, fc.nat({ max: 20 }), (text, tokens) => {
      const first = firstTokens(text, tokens)
      return estimateTokens(first) <= tokens && text.startsWith(first)
    }),
  )
})

t.test("no answer is longer than its limit, thoughts included, and the same prompt has the same answer", async t => {
  const tools = [{ name: "look", parameters: { properties: { at: { type: "string" } } } }]
  fc.assert(
    fc.property(anyText, fc.nat({ max: 60 }), fc.boolean(), fc.boolean(), (question, maxTokens, thinks, called) => {
      const asked = { ...prompt, question, maxTokens, thinks, tools: called ? tools : [] }
      const answer = answerTo(asked)
      t.same(answerTo(asked), answer)
      return answer.outputTokens <= maxTokens && answer.thoughtTokens <= answer.outputTokens
    }),
    { numRuns: 50 },
  )
})

t.test("what is understood is answered, everything else is quoted", async t => {
  const said = (question: string): string => answerTo({ ...prompt, question }).text
  t.equal(said("Please count to 4!"), "1, 2, 3, 4")
  t.equal(said("What is 7*6?"), "7*6 = 42")
  t.equal(said('Reply with exactly: "I am here."'), "I am here.")
  t.match(said("Who are you?"), /You asked: "Who are you\?"/)
  t.match(said("x".repeat(10_000)), /^You asked: "x{160}…"/)
})

t.test("a tool that the question names is preferred; none is called against the choice", async t => {
  const tools = ["one", "two"].map(name => ({ name, parameters: {} }))
  const called = (more: Partial<Prompt>) => answerTo({ ...prompt, tools, ...more }).call?.name
  t.equal(called({}), "one")
  t.equal(called({ question: "use two" }), "two")
  t.equal(called({ toolChoice: { name: "two" } }), "two")
  t.equal(called({ toolChoice: "none" }), undefined)
  t.equal(called({ toolResult: "done" }), undefined)
})

t.test("an example fits its schema, whatever its form", async t => {
  const cases: readonly [object, unknown][] = [
    [{ const: 7 }, 7],
    [{ enum: ["a", "b"] }, "a"],
    [{ type: ["null", "integer"], exclusiveMinimum: 3 }, 4],
    [{ type: "STRING", minLength: 12 }, "example....."],
    [{ anyOf: [{ type: "boolean" }, { type: "null" }] }, true],
    [{ allOf: [{ properties: { a: { type: "number", maximum: -2 } } }] }, { a: -2 }],
    [{ type: "array", minItems: 2, items: { type: "string", format: "date" } }, ["2026-01-15", "2026-01-15"]],
    [{ $ref: "#/$defs/x", $defs: { x: { type: "boolean" } } }, true],
    [{ $ref: "#/nowhere" }, {}],
    [{ type: "__proto__" }, null],
    [{ type: "string", format: "constructor" }, "example"],
  ]
  for (const [schema, value] of cases) t.same(exampleOf(schema, ""), value, JSON.stringify(schema))
})

t.test("a schema that contains itself ends", async t => {
  const tree = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] }
  t.ok(JSON.stringify(exampleOf(tree, "")).length < 1000)
})

t.test("base64 counts as a part, not as text", async t => {
  const data = `data:image/png;base64,${"A".repeat(90_000)}`
  t.ok(inputTokens([{ type: "image_url", image_url: { url: data } }]) < 1700)
  t.ok(inputTokens([{ inlineData: { mimeType: "image/png", data: "A".repeat(90_000) } }]) < 1700)
  t.equal(inputTokens("abcd"), 2)
})
