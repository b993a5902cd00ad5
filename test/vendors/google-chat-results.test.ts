/** Tool calls of the history, their results and their thought signatures, towards the generate-content wire. */
import t from "tap"
import { assistant, budgets, contentsOf, tool, toolCall } from "../fixtures/google-chat.ts"

const refuses = (param: string) => ({ code: "invalid_request", param })
const user = (content: unknown) => ({ role: "user", content })
const dummy = "skip_thought_signature_validator"

t.test(
  "bug 27: the results of parallel calls are one user turn, in the order of the calls, with their names",
  async t => {
    const messages = [
      user("q"),
      assistant(toolCall("1", "f", '{"a":1}'), toolCall("2", "g"), toolCall("3", "f")),
      tool("3", '{"n":3}'),
      tool("1", '{"n":1}'),
      tool("2", [{ type: "text", text: '{"n":2}' }]),
      user("go on"),
    ]
    const [, model, results] = contentsOf(messages, { rules: budgets })
    t.same(model?.parts, [
      { functionCall: { id: "1", name: "f", args: { a: 1 } } },
      { functionCall: { id: "2", name: "g", args: {} } },
      { functionCall: { id: "3", name: "f", args: {} } },
    ])
    t.same(results, {
      role: "user",
      parts: [
        { functionResponse: { id: "1", name: "f", response: { n: 1 } } },
        { functionResponse: { id: "2", name: "g", response: { n: 2 } } },
        { functionResponse: { id: "3", name: "f", response: { n: 3 } } },
        { text: "go on" },
      ],
    })
  },
)

t.test("bug 43: calls with empty or equal ids keep their results by order", async t => {
  const messages = [user("q"), assistant(toolCall("", "f"), toolCall("", "g")), tool("", '"x"'), tool("", '"y"')]
  t.same(contentsOf(messages)[2]?.parts, [
    { functionResponse: { name: "f", response: { result: "x" } } },
    { functionResponse: { name: "g", response: { result: "y" } } },
  ])
})

t.test("bugs 8, 9, 18, 19: calls and results that do not pair up are refused", async t => {
  const call = assistant(toolCall("1", "f"))
  const cases: readonly (readonly [messages: readonly object[], param: string])[] = [
    [[user("q"), tool("1", "x")], "messages[1].tool_call_id"],
    [[user("q"), call], "messages[1].tool_calls"],
    [[user("q"), call, user("r"), tool("1", "x")], "messages[1].tool_calls"],
    [[user("q"), call, tool("2", "x")], "messages[1].tool_calls"],
    [[user("q"), call, tool("1", "x"), tool("1", "x")], "messages[3].tool_call_id"],
    [
      [user("q"), call, tool("1", "x"), { role: "assistant", content: "a" }, tool("1", "x")],
      "messages[4].tool_call_id",
    ],
    [[user("q"), assistant({ id: "1", type: "function", function: {} })], "messages[1].tool_calls[0]"],
  ]
  for (const [messages, param] of cases) t.throws(() => contentsOf(messages), refuses(param), JSON.stringify(messages))
})

t.test("the older form of calls is understood", async t => {
  const messages = [
    user("q"),
    { role: "assistant", content: null, function_call: { name: "f", arguments: '{"a":1}' } },
    { role: "function", name: "f", content: "done" },
  ]
  t.match(contentsOf(messages), [
    {},
    { parts: [{ functionCall: { name: "f", args: { a: 1 } } }] },
    { parts: [{ functionResponse: { name: "f", response: { result: "done" } } }] },
  ])
})

const responseTo = (content: unknown): unknown => {
  const [, , results] = contentsOf([user("q"), assistant(toolCall("1", "f")), tool("1", content)])
  return (results?.parts[0]?.functionResponse as { response: unknown } | undefined)?.response
}

t.test("a result becomes an object: objects stay, the rest is wrapped", async t => {
  t.same(responseTo('{"a":[1]}'), { a: [1] })
  t.same(responseTo("[1,2]"), { result: [1, 2] })
  t.same(responseTo("12"), { result: 12 })
  t.same(responseTo("null"), { result: null })
  t.same(responseTo("sunny"), { result: "sunny" })
  t.same(responseTo(""), { result: "" })
  t.same(responseTo(null), { result: "" })
})

t.test("bug 28: a result that is itself a schema with $ref stays text", async t => {
  for (const text of ['{"$ref":"#/$defs/a"}', '[{"a":{"$ref":"x"}}]']) t.same(responseTo(text), { output: text })
  t.same(responseTo('{"a":"$ref"}'), { a: "$ref" }, "a value is no reference")
})

t.test("a result that JSON would change stays text", async t => {
  const deep = "[".repeat(5_000) + "]".repeat(5_000)
  const beside = '{"city":"Seoul","id":12345678901234567890}'
  for (const text of ['{"id":12345678901234567890}', beside, deep]) t.same(responseTo(text), { output: text })
})

t.test("pictures that a tool returned stand behind all results", async t => {
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
  const messages = [
    user("q"),
    assistant(toolCall("1", "f"), toolCall("2", "f")),
    tool("1", [{ type: "text", text: "seen" }, picture]),
    tool("2", "ok"),
  ]
  t.match(contentsOf(messages)[2]?.parts, [
    { functionResponse: { id: "1", response: { result: "seen" } } },
    { functionResponse: { id: "2" } },
    { inlineData: { mimeType: "image/png" } },
  ])
})

t.test("arguments that are no object are kept as they were written", async t => {
  const args = (written: string): unknown => {
    const [, model] = contentsOf([user("q"), assistant(toolCall("1", "f", written)), tool("1", "")])
    return (model?.parts[0]?.functionCall as { args: unknown } | undefined)?.args
  }
  t.same(args(""), {})
  t.same(args('{"a":'), { _raw: '{"a":' })
  t.same(args("[1]"), { _raw: "[1]" })
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
  t.same(args(nested(32)), JSON.parse(nested(32)))
  t.same(args(nested(33)), { _raw: nested(33) }, "neither side reads it willingly")
})

// ---- thought signatures ----

const kept = (model: string, signature: string): string => JSON.stringify({ maker: `v/${model}`, signature })
const signed = (calls: readonly object[], given: Parameters<typeof contentsOf>[1]): readonly unknown[] => {
  const ids = calls.map(call => (call as { id: string }).id)
  const [, model] = contentsOf([user("q"), assistant(...calls), ...ids.map(id => tool(id, "{}"))], given)
  return model?.parts.map(part => part.thoughtSignature) ?? []
}
const two = [toolCall("1", "f"), toolCall("2", "g")]
const fromClient = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } })

t.test("bug 12: a kept signature comes back unchanged, on the call that bore it", async t => {
  const signature = "ab+/cd-_=="
  t.same(signed(two, { signatures: new Map([["1", kept("their-model", signature)]]) }), [signature, undefined])
  t.same(signed(two, { signatures: new Map([["2", kept("their-model", signature)]]) }), [dummy, signature])
})

t.test("bug 12: the documented dummy stands for a signature that is not known, on each turn's first call", async t => {
  t.same(signed(two, {}), [dummy, undefined])
  t.same(signed(two, { rules: budgets }), [undefined, undefined], "models that think by a budget need none")
  const again = [
    user("q"),
    assistant(...two),
    tool("1", ""),
    tool("2", ""),
    assistant(toolCall("3", "f")),
    tool("3", ""),
  ]
  t.match(contentsOf(again)[3]?.parts, [{ functionCall: { id: "3" }, thoughtSignature: dummy }])
})

t.test("bug 13: a client's own signature is passed on as it came; what was kept is surer", async t => {
  const calls = [toolCall("1", "f", "{}", fromClient("a-b_c+d/==")), toolCall("2", "g")]
  t.same(signed(calls, {}), ["a-b_c+d/==", undefined])
  t.same(signed(calls, { rules: budgets }), ["a-b_c+d/==", undefined])
  t.same(signed(calls, { signatures: new Map([["1", kept("their-model", "kept")]]) }), ["kept", undefined])
})

t.test("a signature that another model made is not sent: it would be refused as corrupted", async t => {
  const calls = [toolCall("1", "f", "{}", fromClient("foreign"))]
  for (const value of [kept("other-model", "foreign"), '{"model":"x","blocks":[]}', "garbage"]) {
    t.same(signed(calls, { signatures: new Map([["1", value]]) }), [dummy], value)
  }
})
