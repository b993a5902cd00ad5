import fc from "fast-check"
import t from "tap"
import { type EventSign, withoutEffort } from "../../core/index.ts"
import { ByteChunks, withoutUsage } from "../../plugins/chat/chunks.ts"
import { checkValues } from "../../plugins/chat/schema.ts"
import adapter from "../../plugins/vendors/openai/index.ts"
import { eventsOf } from "../fixtures/metering.ts"
import { recorded } from "../fixtures/recorded.ts"

const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
const chunk = (part: object) => ({ id: "c", object: "chat.completion.chunk", created: 1, model: "vendor-1", ...part })
const text = (content: string, finish_reason: string | null = null) =>
  chunk({ choices: [{ index: 0, delta: { content }, finish_reason }], usage: null })
const onlyUsage = chunk({ choices: [], usage })
const event = (value: unknown) => ({ data: Buffer.from(typeof value === "string" ? value : JSON.stringify(value)) })
const neutral = (): EventSign => ({ sign: "neutral" })

const chunks = (options: { includeUsage?: boolean; choices?: number; sign?: () => EventSign } = {}) =>
  new ByteChunks({
    api: { sign: options.sign ?? neutral },
    model: "catalog-1",
    includeUsage: options.includeUsage ?? false,
    choices: options.choices ?? 1,
  })

t.test("chunks pass as bytes, under the catalog's name of the model", async t => {
  const stream = chunks()
  const out = [text("a"), text("b", "stop"), onlyUsage].map(one => String(stream.push(event(one))))
  const named = (one: object) => `data: ${JSON.stringify({ ...one, model: "catalog-1" })}\n\n`
  t.same(out, [named(text("a")), named(text("b", "stop")), ""])
  t.equal(stream.end(), "data: [DONE]\n\n")
})

t.test("the usage chunk passes when the client asked for it", async t => {
  t.match(String(chunks({ includeUsage: true }).push(event(onlyUsage))), /"total_tokens":3/)
})

t.test("a client that did not ask for usage gets the other news of its chunk, and no chunk without news", async t => {
  const shown = (value: unknown) => String(withoutUsage(event(value).data))
  t.equal(shown(onlyUsage), "")
  t.equal(shown({ ...onlyUsage, system_fingerprint: "a", citations: null }), "")
  const rest = chunk({ choices: [], citations: ["https://example.com"], moderation: {} })
  t.equal(shown({ ...rest, usage }), JSON.stringify(rest))
  for (const other of [{ ...text("a"), usage }, text("a"), rest]) t.equal(shown(other), JSON.stringify(other))
  t.equal(shown('{"choices":[],"usage":'), '{"choices":[],"usage":')
})

t.test("the vendor's name of the model never shows, whenever it comes", async t => {
  const models = ["", "", "vendor-1", "vendor-1", "vendor-2", "vendor-1"]
  const stream = chunks()
  for (const model of models) {
    const out = String(stream.push(event({ ...text("a"), model })))
    t.equal(out, `data: ${JSON.stringify({ ...text("a"), model: "catalog-1" })}\n\n`)
  }
  const { model: _, ...nameless } = text("a")
  t.equal(String(stream.push(event(nameless))), `data: ${JSON.stringify(nameless)}\n\n`)
})

t.test("a reason without a word is no end", async t => {
  const cut = chunks()
  cut.push(event(text("a", "")))
  t.throws(() => cut.end(), { code: "upstream_unavailable" })
})

t.test("the end is told once, with blanks around it too, and events without data say nothing", async t => {
  for (const end of [" [DONE]", "[DONE] ", "[DONE]\r"]) {
    const stream = chunks()
    const out = ["", " ", end].map(data => stream.push(event(data)))
    t.same(out, ["", "", ""], JSON.stringify(end))
    t.equal(stream.end(), "data: [DONE]\n\n")
  }
  t.throws(() => chunks().push({ type: "error", ...event("") }), { code: "upstream_unavailable" })
})

t.test("a text that talks about models and usage is not touched", async t => {
  const said = '"model":"vendor-1" "usage" "choices":[] "finish_reason":"stop"'
  const stream = chunks()
  stream.push(event(text("")))
  const out = String(stream.push(event(text(said))))
  t.equal(JSON.parse(out.slice(6)).choices[0].delta.content, said)
  t.throws(() => stream.end(), { code: "upstream_unavailable" }, "the words were no end")
})

t.test("several answers are whole when each has ended, or the vendor says so", async t => {
  const ended = (index: number) => chunk({ choices: [{ index, delta: {}, finish_reason: "stop" }] })
  const stream = chunks({ choices: 2 })
  stream.push(event(ended(0)))
  t.throws(() => stream.end(), { code: "upstream_unavailable" }, "the second answer was cut")
  stream.push(event(ended(1)))
  t.equal(stream.end(), "data: [DONE]\n\n")
  const told = chunks({ choices: 2 })
  told.push(event(ended(0)))
  told.push(event("[DONE]"))
  t.equal(told.end(), "data: [DONE]\n\n")
})

t.test("any text comes out as it went in", async t => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), content => {
      const out = String(chunks().push(event(text(content))))
      const expected = { ...JSON.parse(JSON.stringify(text(content))), model: "catalog-1" }
      t.same(JSON.parse(out.slice(6)), expected)
      return out.startsWith("data: ") && out.endsWith("\n\n")
    }),
  )
})

t.test("a chunk over several lines stays one event", async t => {
  const out = String(chunks().push(event(JSON.stringify(text("a"), null, 1))))
  const lines = out.trimEnd().split("\n")
  t.ok(lines.every(line => line.startsWith("data: ")))
  t.equal(JSON.parse(lines.map(line => line.slice(6)).join("\n")).model, "catalog-1")
})

t.test("the end needs [DONE] or a reason to have finished", async t => {
  const done = chunks()
  done.push(event(text("a")))
  t.equal(done.push(event("[DONE]")), "")
  t.equal(done.end(), "data: [DONE]\n\n")
  const cut = chunks()
  cut.push(event(text("a")))
  t.throws(() => cut.end(), { code: "upstream_unavailable" })
})

t.test("an error inside the stream never shows our account", async t => {
  const sign = (kind: "account" | "invalid") => () =>
    ({ sign: "fault", fault: { kind, status: 400, message: "the vendor's words" } }) as const
  const error = event({ error: { message: "the vendor's words" } })
  t.throws(() => chunks({ sign: sign("account") }).push(error), {
    code: "upstream_account",
    message: /^The model's vendor/,
  })
  t.throws(() => chunks({ sign: sign("invalid") }).push(error), {
    code: "upstream_invalid",
    message: "the vendor's words",
  })
})

t.test("bug 44: an error beside choices and usage is an error; an empty one, or a text about one, is none", async t => {
  const { chat } = adapter.apis
  const stream = () => new ByteChunks({ api: chat!, model: "catalog-1", includeUsage: true, choices: 1 })
  const [exchange] = recorded("openai-compatible", "openrouter-stream-error.exchange.json")
  if (exchange !== undefined) {
    const told = stream()
    const read = () => eventsOf(exchange.body).map(one => told.push(one))
    t.throws(read, { code: "upstream_invalid", message: "Token limit reached" })
  }
  const account = { ...text("a"), error: { code: 401, message: "No auth for org-1" } }
  t.throws(() => stream().push(event(account)), { code: "upstream_account", message: /^The model's vendor/ })
  const fine = stream()
  for (const one of [{ error: null, ...text('"error"') }, text("", "stop")]) t.ok(String(fine.push(event(one))))
  t.equal(fine.end(), "data: [DONE]\n\n")
})

t.test("values of the specification's table", async t => {
  const closed = {
    type: "json_schema",
    json_schema: { name: "a", strict: true, schema: { additionalProperties: false } },
  }
  const good = {
    temperature: 2,
    top_p: 0,
    n: 1,
    stop: ["a", "b", "c", "d"],
    tool_choice: "none",
    response_format: closed,
  }
  t.doesNotThrow(() => checkValues(good))
  t.doesNotThrow(() => checkValues(Object.fromEntries(Object.keys(good).map(name => [name, null]))))
  const bad: readonly Record<string, unknown>[] = [
    { top_p: 1.5 },
    { n: 0 },
    { max_tokens: 0 },
    { tool_choice: "maybe" },
    { response_format: { type: "json_schema" } },
    { response_format: { type: "json_schema", json_schema: { name: "a", strict: true, schema: {} } } },
  ]
  for (const value of bad) {
    t.throws(() => checkValues(value), { code: "invalid_request", param: Object.keys(value)[0] }, JSON.stringify(value))
  }
})

t.test("bug 14: effort refused with tools is tried again without it", async t => {
  const request = { model: "m", messages: [], tools: [{}], reasoning_effort: "high" }
  const fault = { message: "Function tools with reasoning_effort are not supported" }
  t.same(withoutEffort(request, {}, fault), { model: "m", messages: [], tools: [{}] })
  t.same(withoutEffort(request, { effort_with_tools: "none" }, fault), { ...request, reasoning_effort: "none" })
  t.same(withoutEffort(request, {}, { message: "no", param: "reasoning_effort" })?.tools, [{}])
})

t.test("what was refused for another reason, or would not change, is not tried again", async t => {
  const fault = { message: "Function tools with reasoning_effort are not supported" }
  const request = { model: "m", messages: [], tools: [{}] }
  t.equal(withoutEffort(request, {}, fault), undefined, "nothing to leave out")
  t.equal(withoutEffort({ ...request, reasoning_effort: "none" }, { effort_with_tools: "none" }, fault), undefined)
  t.equal(withoutEffort({ ...request, tools: [], reasoning_effort: "low" }, {}, fault), undefined, "no tools")
  t.equal(withoutEffort({ ...request, reasoning_effort: "low" }, {}, { message: "too long" }), undefined)
})
