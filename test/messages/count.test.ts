/** Input tokens of a Messages request, counted without a vendor. Counts of texts are o200k's own. */
import { registerHooks } from "node:module"
import fc from "fast-check"
import t from "tap"

const asked: string[] = []
registerHooks({
  resolve(specifier, context, next) {
    asked.push(specifier)
    return next(specifier, context)
  },
})
const tokenizerAsked = (): boolean => asked.some(name => name.startsWith("gpt-tokenizer"))

// Imported after the hook, so that the first test sees what a start of the gateway reads.
await import("../../plugins/messages/index.ts")
const { countInput } = await import("../../plugins/messages/count.ts")
const { tokensOf } = await import("../../plugins/messages/tokenizer.ts")

const frame = 4
const user = (content: unknown) => ({ messages: [{ role: "user", content }] })

t.test("the tables are read by the first count, not by the start", async t => {
  t.notOk(tokenizerAsked())
  t.equal(await tokensOf(["Hello world"]), 2)
  t.ok(tokenizerAsked())
})

t.test("system, messages and tools are counted, each message with its frame", async t => {
  t.equal(await countInput(user("Hello world")), 2 + frame)
  t.equal(await countInput({ system: "Hello world", ...user([{ type: "text", text: "Hello world" }]) }), 4 + frame)
  const schema = { type: "object" }
  const tool = { name: "hello", description: "Hello world", input_schema: schema }
  const told = (await tokensOf(["hello"])) + 2 + (await tokensOf([JSON.stringify(schema)]))
  t.equal(await countInput({ tools: [tool], ...user("Hello world") }), 2 + frame + told)
})

t.test("calls and results count by their words, thoughts not at all", async t => {
  const assistant = [
    { type: "thinking", thinking: "a long thought", signature: "c2lnbmVk" },
    { type: "redacted_thinking", data: "c2VjcmV0" },
    { type: "tool_use", id: "toolu_1", name: "hello", input: { a: 1 } },
  ]
  const results = [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "Hello world" }] }]
  const request = { messages: [{ content: assistant }, { content: results }] }
  t.equal(await countInput(request), (await tokensOf(["hello"])) + (await tokensOf(['{"a":1}'])) + 2 + 2 * frame)
})

t.test("images and files count flat, whatever their bytes; a document of text counts as text", async t => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "A".repeat(50_000) } }
  const file = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBER" } }
  const words = { type: "document", title: "Hello world", source: { type: "text", data: "Hello world" } }
  t.equal(await countInput(user([image, image])), 2 * 1_600 + frame)
  t.equal(await countInput(user([{ type: "tool_result", content: [file] }])), 3_000 + frame)
  t.equal(await countInput(user([words])), 4 + frame)
})

t.test("control tokens in a client's text are text", async t => {
  t.ok((await tokensOf(["<|endoftext|>"])) > 1)
})

t.test("what is no request of the wire counts what can be read of it", async t => {
  for (const odd of [{}, { messages: 5, system: 7, tools: "x" }, { messages: [null, 1, { content: [null, [], 2] }] }]) {
    t.type(await countInput(odd), "number")
  }
})

t.test("a long text is counted in pieces that change little, and a very long one in proportion", async t => {
  const prose = " The gateway holds credits before the vendor is called, and settles what was used."
  const once = await tokensOf([prose])
  const long = await tokensOf([prose.repeat(500)])
  t.ok(Math.abs(long - 500 * once) <= 50, `${long} for ${500 * once}`)
  const veryLong = await tokensOf([prose.repeat(10_000)])
  t.ok(Math.abs(veryLong / (10_000 * once) - 1) < 0.01, `${veryLong} for ${10_000 * once}`)
})

t.test("text without spaces, of wide characters or broken ones, neither stalls nor stops it", async t => {
  const text = fc.array(fc.string({ unit: "binary", maxLength: 1_500 }), { maxLength: 4 })
  const check = fc.asyncProperty(text, async texts => {
    const bytes = Buffer.byteLength(texts.join(""))
    const tokens = await tokensOf(texts)
    return tokens <= bytes * 3 && tokens > 0 === bytes > 0
  })
  await fc.assert(check, { numRuns: 20 })
  t.ok((await tokensOf(["🙂".repeat(2_000)])) < 4_100, "no character is cut in two")
  t.ok((await tokensOf(["a".repeat(20_000), "\ud800".repeat(10)])) > 2_000)
})
