/** Numbers of tools' arguments, as they were written: through every wire, in both directions. */
import fc from "fast-check"
import t from "tap"
import { argumentsIn, type ChatAnswer, exactJson } from "../../core/index.ts"
import { chatRequest, wholeMessage } from "../../plugins/messages/hub/index.ts"
import * as anthropic from "../fixtures/anthropic-chat.ts"
import * as google from "../fixtures/google-chat.ts"

const digits = fc.stringMatching(/^(0|[1-9]\d{0,24})$/)
const number = fc
  .tuple(fc.constantFrom("", "-"), digits, fc.constantFrom("", ".0", ".10", ".123456789012345678901"), digits)
  .chain(([sign, whole, fraction, power]) =>
    fc.constantFrom(`${sign}${whole}${fraction}`, `${sign}${whole}${fraction}e${power.slice(0, 3)}`),
  )

/** JSON as text, without blanks; keys that engines would sort (`"1"`) stay out. */
const { value, object } = fc.letrec<{ value: string; object: string; list: string }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    number,
    fc.string().map(one => JSON.stringify(one)),
    tie("list"),
    tie("object"),
  ),
  list: fc.array(tie("value"), { maxLength: 3 }).map(items => `[${items.join(",")}]`),
  object: fc
    .dictionary(fc.stringMatching(/^[a-z]{1,4}$/), tie("value"), { maxKeys: 3 })
    .map(fields => `{${Object.keys(fields).map(key => `"${key}":${fields[key]}`)}}`),
}))

t.test("from text to text every number stays as it was written", async t => {
  fc.assert(fc.property(object, text => t.equal(JSON.stringify(argumentsIn(text)), text)))
})

t.test("elsewhere numbers are what they always were", async t => {
  fc.assert(
    fc.property(value, object, (beside, args) => {
      const text = `{"beside":${beside},"args":${args}}`
      const { args: kept, ...rest } = exactJson(text, ["args"]) as Record<string, unknown>
      t.equal(JSON.stringify(kept), args)
      t.same(rest, { beside: JSON.parse(beside) })
      t.same(exactJson(text, ["input"]), JSON.parse(text))
    }),
  )
  t.same(exactJson('{"args":1.0}', ["args"]), { args: 1 }, "no object, no list")
})

t.test("what is no object is kept as it was written", async t => {
  for (const written of ['{"a":', "[1]", "null", "12345678901234567890", "1"]) {
    t.same(argumentsIn(written), { _raw: written })
  }
  for (const written of ["", "  ", null, 5]) t.same(argumentsIn(written), {})
  t.throws(() => exactJson('{"args":', ["args"]), SyntaxError)
})

const written = '{"id":1234567890123456789,"more":[1.0,-0,{"far":1e400}],"price":19.90}'

t.test("on the Messages wire", async t => {
  const history = [
    { role: "user", content: "Go" },
    google.assistant(google.toolCall("a", "look", written)),
    google.tool("a", "ok"),
  ]
  t.ok(JSON.stringify(anthropic.messagesFor(history)).includes(`"input":${written}`), "in the history")
  const block = `{"type":"tool_use","id":"a","name":"look","input":${written}}`
  const message = `{"content":[${block}],"stop_reason":"tool_use","usage":{"input_tokens":1.0,"output_tokens":2}}`
  const answer = anthropic.spoke.whole(Buffer.from(message), anthropic.contextFor(), { names: new Map() })
  t.ok(JSON.stringify(answer).includes(JSON.stringify(written)), "in a whole answer")
  t.match(answer, { usage: { prompt_tokens: 1 } })
  const begun = { type: "content_block_start", data: `{"index":0,"content_block":${block}}` }
  const events = [begun, { type: "message_stop", data: "{}" }]
  const chunks = anthropic.streamedAnswer(events.map(({ type, data }) => ({ type, data: Buffer.from(data) })))
  t.equal(anthropic.putTogether(chunks).calls[0]?.arguments, written, "in a stream")
})

t.test("on the generate-content wire", async t => {
  const history = [
    { role: "user", content: "Go" },
    google.assistant(google.toolCall("a", "look", written)),
    google.tool("a", "ok"),
  ]
  t.ok(JSON.stringify(google.contentsOf(history)).includes(`"args":${written}`), "in the history")
  const part = `{"functionCall":{"name":"look","args":${written}}}`
  const answer = `{"candidates":[{"index":0.0,"content":{"parts":[${part}]},"finishReason":"STOP"}]}`
  const { choices } = google.whole(Buffer.from(answer))
  t.match(choices, [{ index: 0, message: { tool_calls: [{ function: { arguments: written } }] } }], "in a whole answer")
  const streamed = google.assembled(google.chunksOf(Buffer.from(`data: ${answer}\n\n`)))
  t.equal(streamed.choices[0]?.calls[0]?.function.arguments, written, "in a stream")
})

t.test("arguments in pieces, one of them below a number", async t => {
  const pieces = (...partialArgs: readonly string[]) =>
    `{"functionCall":{"name":"look","willContinue":true,"partialArgs":[${partialArgs}]}}`
  const parts = `${pieces('{"jsonPath":"$.a","numberValue":1.0}', '{"jsonPath":"$.a.b","numberValue":2.50}')},{"functionCall":{}}`
  const answer = `{"candidates":[{"content":{"parts":[${parts}]},"finishReason":"STOP"}]}`
  const { choices } = google.assembled(google.chunksOf(Buffer.from(`data: ${answer}\n\n`)))
  t.equal(choices[0]?.calls[0]?.function.arguments, '{"a":{"b":2.50}}')
})

t.test("through the hub of messages", async t => {
  const call = { id: "a", type: "function", function: { name: "look", arguments: written } }
  const answer: ChatAnswer = { choices: [{ message: { tool_calls: [call] }, finish_reason: "tool_calls" }] }
  const message = wholeMessage(answer, { id: "msg_1", model: "m", stops: [], estimatedInput: 0 })
  t.ok(JSON.stringify(message).includes(`"input":${written}`))
  const use = `{"type":"tool_use","id":"a","name":"look","input":${written}}`
  const result = '{"type":"tool_result","tool_use_id":"a","content":"ok"}'
  const text = `{"max_tokens":9,"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":[${use}]},{"role":"user","content":[${result}]}]}`
  const request = chatRequest(exactJson(text, ["input"]) as Record<string, unknown>, anthropic.budgetModel)
  t.match(request.messages[1], { tool_calls: [{ function: { arguments: written } }] })
})
