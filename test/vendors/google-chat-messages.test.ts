/** Conversations towards the generate-content wire: roles, parts, tool calls with their results and signatures. */
import fc from "fast-check"
import t from "tap"
import { assistant, type Body, budgets, contentsOf, draft, sent, tool, toolCall } from "../fixtures/google-chat.ts"

const refuses = (param: string) => ({ code: "invalid_request", param })
const user = (content: unknown) => ({ role: "user", content })
const dummy = "skip_thought_signature_validator"

t.test("instructions at the start are the system's, later ones keep their place", async t => {
  const messages = [
    { role: "system", content: "one" },
    { role: "developer", content: [{ type: "text", text: "two" }] },
    user("three"),
    { role: "system", content: "four" },
    { role: "assistant", content: "five" },
  ]
  t.same(sent({ messages }), {
    systemInstruction: { parts: [{ text: "one" }, { text: "two" }] },
    contents: [
      { role: "user", parts: [{ text: "three" }, { text: "four" }] },
      { role: "model", parts: [{ text: "five" }] },
    ],
  })
})

t.test("instructions that stand alone are what the user says", async t => {
  t.same(sent({ messages: [{ role: "system", content: "one" }] }), {
    contents: [{ role: "user", parts: [{ text: "one" }] }],
  })
})

t.test("bug 15: empty texts are no parts, and a message without parts is none", async t => {
  const messages = [
    user("a"),
    { role: "assistant", content: "" },
    user([{ type: "text", text: "" }]),
    user([
      { type: "text", text: "b" },
      { type: "text", text: "" },
    ]),
  ]
  t.same(contentsOf(messages), [{ role: "user", parts: [{ text: "a" }, { text: "b" }] }])
  t.throws(() => contentsOf([user("")]), refuses("messages"))
})

t.test("a conversation that begins with the model is opened for it", async t => {
  const [first, second] = contentsOf([assistant(toolCall("1", "f")), tool("1", "{}")])
  t.match(first, { role: "user", parts: [{ text: /./ }] })
  t.match(second, { role: "model", parts: [{ functionCall: { name: "f" } }] })
})

t.test("bug 7: earlier reasoning is not turned into text; refusals are", async t => {
  const said = { role: "assistant", content: "a", reasoning_content: "secret", refusal: "no" }
  t.same(contentsOf([user("q"), said])[1], { role: "model", parts: [{ text: "a" }, { text: "no" }] })
})

t.test("media arrive as data, under their true names", async t => {
  const content = [
    { type: "image_url", image_url: { url: "data:image/jpg;base64,AAAA", detail: "low" } },
    { type: "image_url", image_url: "data:image/png;name=x;base64,BBBB" },
    { type: "input_audio", input_audio: { data: "CCCC", format: "mp3" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,DDDD" } },
  ]
  t.same(contentsOf([user(content)])[0]?.parts, [
    { inlineData: { mimeType: "image/jpeg", data: "AAAA" } },
    { inlineData: { mimeType: "image/png", data: "BBBB" } },
    { inlineData: { mimeType: "audio/mp3", data: "CCCC" } },
    { inlineData: { mimeType: "application/pdf", data: "DDDD" } },
  ])
})

t.test("a URL is the vendor's to open where the model can, and refused elsewhere; nothing is fetched", async t => {
  const image = (url: string) => [user([{ type: "image_url", image_url: { url } }])]
  const able = { capabilities: ["file_urls"] }
  const field = refuses("messages[0].content[0].image_url")
  t.same(contentsOf(image("https://a.example/x.png"), able)[0]?.parts, [
    { fileData: { fileUri: "https://a.example/x.png" } },
  ])
  t.throws(() => contentsOf(image("https://a.example/x.png")), field)
  for (const url of ["http://a.example/x.png", "https://", "gs://bucket/x", "files/abc", "", "AAAA"]) {
    t.throws(() => contentsOf(image(url), able), field, url)
  }
})

t.test("uploads in our account at the vendor are nobody's to name, unless they are shared", async t => {
  const url = "https://generativelanguage.googleapis.com/v1beta/files/abc"
  const messages = [user([{ type: "file", file: { file_data: url } }])]
  const able = { capabilities: ["file_urls"] }
  t.throws(() => contentsOf(messages, able), refuses("messages[0].content[0].file.file_data"))
  t.same(contentsOf(messages, { ...able, sharedIds: true })[0]?.parts, [{ fileData: { fileUri: url } }])
})

t.test("content that cannot be expressed is refused by its place", async t => {
  const cases: readonly (readonly [part: object, place: string])[] = [
    [{ type: "file", file: { file_id: "file-1" } }, ".file.file_id"],
    [{ type: "input_audio", input_audio: { data: "A", format: "pcm16" } }, ".input_audio.format"],
    [{ type: "input_audio", input_audio: { format: "wav" } }, ".input_audio.data"],
    [{ type: "image_url", image_url: { url: "data:image/png,plain" } }, ".image_url"],
    [{ type: "image_url", image_url: { url: "data:image/png;base64," } }, ".image_url"],
    [{ type: "image_url", image_url: { url: "data:;base64,AAAA" } }, ".image_url"],
    [{ type: "image", source: { type: "base64" } }, ".type"], // bug 33: the block of another wire
    [{ type: "constructor" }, ".type"],
  ]
  for (const [part, place] of cases)
    t.throws(() => contentsOf([user([part])]), refuses(`messages[0].content[0]${place}`))
  t.throws(() => contentsOf([user("a"), { role: "assistant", audio: { id: "a" } }]), refuses("messages[1].audio"))
  t.throws(() => contentsOf([user("a"), { role: "critic", content: "b" }]), refuses("messages[1].role"))
})

// ---- tool calls and results ----

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
  for (const text of ['{"id":12345678901234567890}', deep]) t.same(responseTo(text), { output: text })
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

// ---- any conversation ----

const text = fc.string({ unit: "binary", maxLength: 8 })
const content = fc.oneof(
  text,
  fc.array(
    text.map(one => ({ type: "text", text: one })),
    { maxLength: 3 },
  ),
)
const json = fc.oneof(text, fc.json({ maxDepth: 3 }))
const step = fc.oneof(
  content.map(one => [user(one)]),
  content.map(one => [{ role: "system", content: one }]),
  content.map(one => [{ role: "assistant", content: one }]),
  fc
    .tuple(
      content,
      fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 70 }), json, json), { minLength: 1, maxLength: 4 }),
    )
    .map(([said, calls]) => [{ said, calls }]),
)
const conversation = fc.array(step, { minLength: 1, maxLength: 8 })

type Step = { readonly said: unknown; readonly calls: readonly (readonly [string, string, string])[] }

/** Calls get ids that are unique in the conversation; results come in reverse. */
const written = (steps: readonly (readonly object[])[]): object[] =>
  steps.flat().flatMap((one, at) => {
    if (!("calls" in one)) return [one]
    const { said, calls } = one as Step
    const ids = calls.map((_, index) => `id-${at}-${index}`)
    return [
      {
        role: "assistant",
        content: said,
        tool_calls: calls.map(([name, args], index) => toolCall(ids[index]!, name, args)),
      },
      ...calls.map(([, , result], index) => tool(ids[index]!, result)).reverse(),
    ]
  })

const textsOf = (messages: readonly object[]): string =>
  messages
    .filter(message => (message as { role: string }).role !== "tool")
    .flatMap(message => {
      const said = (message as { content: unknown }).content
      return Array.isArray(said) ? said.map(part => String(part.text)) : [String(said ?? "")]
    })
    .join("")

const opening = "(The conversation begins.)"

const sentText = ({ systemInstruction, contents }: Body): string => {
  const parts = [...(systemInstruction?.parts ?? []), ...contents.flatMap(one => one.parts)]
  const all = parts.map(part => String(part.text ?? "")).join("")
  return all.replace(opening, "")
}

const calls = (turn: Body["contents"][number] | undefined) => turn?.parts.filter(part => "functionCall" in part) ?? []
const results = (turn: Body["contents"][number] | undefined) =>
  turn?.parts.filter(part => "functionResponse" in part) ?? []

const keepsRules = (messages: readonly object[], body: Body): boolean =>
  body.contents.every((turn, at) => {
    const before = body.contents[at - 1]
    const name = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/
    return (
      turn.role === (at % 2 === 0 ? "user" : "model") &&
      turn.parts.length > 0 &&
      turn.parts.every(part => part.text !== "") &&
      calls(turn).every(({ functionCall }) => name.test((functionCall as { name: string }).name)) &&
      results(turn).length === calls(before).length &&
      results(turn).every((part, index) => {
        const { functionCall } = calls(before)[index] as { functionCall: { id: string; name: string } }
        const { functionResponse } = part as { functionResponse: { id: string; name: string; response: unknown } }
        const isObject = typeof functionResponse.response === "object" && !Array.isArray(functionResponse.response)
        return functionResponse.id === functionCall.id && functionResponse.name === functionCall.name && isObject
      })
    )
  }) && sentText(body) === textsOf(messages)

t.test("any conversation keeps the vendor's rules and loses no text", async t => {
  fc.assert(
    fc.property(conversation, steps => {
      const messages = written(steps)
      if (textsOf(messages) === "" && !messages.some(message => "tool_calls" in message)) return
      const { body, memo } = draft({ messages })
      t.equal(keepsRules(messages, body as unknown as Body), true)
      const names = new Set((memo as ReadonlyMap<string, string>).values())
      t.equal(names.size, (memo as ReadonlyMap<string, string>).size, "aliases are unique")
    }),
  )
})
