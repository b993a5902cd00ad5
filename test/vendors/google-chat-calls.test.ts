/** Tool calls that answers of the generate-content wire make: ids, indexes, names, signatures, arguments in pieces. */
import t from "tap"
import { madeCallId } from "../../plugins/vendors/common/answers.ts"
import {
  assembled,
  candidate,
  chat,
  chunksOf,
  contextOf,
  type Message,
  parsed,
  streamOf,
  whole,
} from "../fixtures/google-chat.ts"

t.test("the vendor's ids are used; where there is none, each call gets its own", async t => {
  const parts = [{ id: "theirs", name: "f" }, { name: "f" }, { name: "f", id: "" }].map(functionCall => ({
    functionCall,
  }))
  const calls = whole(candidate(parts, "STOP")).choices[0]?.message.tool_calls ?? []
  t.same(
    calls.map(call => call.id),
    ["theirs", "call_1_0", "call_1_1"],
  )
  t.same(
    calls.map(call => call.function.arguments),
    ["{}", "{}", "{}"],
  )
})

t.test("made ids differ over all candidates of an answer, and fit the wires that another turn may go to", async t => {
  const [one] = candidate([{ functionCall: { name: "f" } }], "STOP").candidates
  const answer = { candidates: [one, { ...one, index: 1 }] }
  const made = ["call_1_0", "call_1_1"]
  t.same(
    whole(answer).choices.flatMap(({ message }) => message.tool_calls?.map(({ id }) => id) ?? []),
    made,
  )
  t.same(
    assembled(chunksOf(streamOf(answer))).choices.flatMap(({ calls }) => calls.map(({ id }) => id)),
    made,
  )
  t.ok(madeCallId({ id: `chatcmpl-${"0".repeat(32)}` }, 99).length <= 40)
})

t.test("bugs 31 and 35: tool indexes count from 0 over the whole stream", async t => {
  const call = (name: string) => candidate([{ functionCall: { name, args: {} } }])
  const chunks = chunksOf(streamOf(candidate([{ text: "a" }]), call("f"), call("g"), candidate([{ text: "" }], "STOP")))
  const indexes = chunks.flatMap(({ choices }) =>
    choices.flatMap(one => one.delta.tool_calls?.map(({ index }) => index) ?? []),
  )
  t.same(indexes, [0, 1])
})

t.test("bug 12: signatures are kept by call id, and written beside the call", async t => {
  const signature = "ab+/cd=="
  const parts = [
    { functionCall: { name: "f", args: {} }, thoughtSignature: signature },
    { functionCall: { name: "g" } },
  ]
  for (const read of [whole, (one: unknown, given: object) => assembled(chunksOf(streamOf(one), given))] as const) {
    const kept = new Map<string, string>()
    const answer = read(candidate(parts, "STOP"), { keep: (id: string, value: string) => kept.set(id, value) })
    const [choice] = answer.choices as readonly { message?: Message; calls?: Message["tool_calls"] }[]
    const [first, second] = choice?.message?.tool_calls ?? choice?.calls ?? []
    t.same(first?.extra_content, { google: { thought_signature: signature } })
    t.equal(second?.extra_content, undefined)
    t.same([...kept.keys()], [first?.id])
    const messages = [
      { role: "user", content: "q" },
      {
        role: "assistant",
        tool_calls: [{ id: first?.id, type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: first?.id, content: "" },
    ]
    const { body } = chat.request({ model: "our-model", messages }, contextOf({ signatures: kept }))
    t.match(body, { contents: [{}, { parts: [{ thoughtSignature: signature }] }] }, "the round trip")
  }
})

t.test("a name that the vendor does not take travels under an alias and comes back", async t => {
  const tools = ["1 tool/é", "1_tool__", "_1_tool__"].map(name => ({ type: "function", function: { name } }))
  const messages = [{ role: "user", content: "q" }]
  const { body, memo } = chat.request({ model: "our-model", messages, tools }, contextOf())
  const [{ functionDeclarations }] = body.tools as readonly [{ functionDeclarations: readonly { name: string }[] }]
  const names = functionDeclarations.map(({ name }) => name)
  t.equal(new Set(names).size, 3)
  for (const name of names) t.match(name, /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/)
  const called = candidate(
    names.map(name => ({ functionCall: { name } })),
    "STOP",
  )
  const wanted = ["1 tool/é", "1_tool__", "_1_tool__"]
  t.same(
    whole(called, {}, memo).choices[0]?.message.tool_calls?.map(call => call.function.name),
    wanted,
  )
  const [choice] = assembled(chunksOf(streamOf(called), {}, 7, memo)).choices
  t.same(
    choice?.calls.map(call => call.function.name),
    wanted,
  )
})

t.test("bug 10: a call of a nameless tool is the vendor's fault", async t => {
  for (const functionCall of [{ name: "", args: {} }, { args: { a: 1 } }]) {
    const answer = candidate([{ functionCall }], "STOP")
    t.throws(() => whole(answer), { code: "upstream_unreadable" })
    t.throws(() => chunksOf(streamOf(answer)), { code: "upstream_unreadable" })
  }
})

t.test("a part whose call is null is a part without a call, whole and streamed", async t => {
  const answer = candidate([{ functionCall: null, text: "Hello" }], "STOP")
  t.match(whole(answer).choices, [{ message: { content: "Hello" }, finish_reason: "stop" }])
  t.match(assembled(chunksOf(streamOf(answer))).choices, [{ text: "Hello", reasons: ["stop"] }])
})

const partial = (...calls: readonly object[]): Buffer =>
  streamOf(...calls.map(functionCall => candidate([{ functionCall }])), candidate([], "STOP"))

t.test("pieces of arguments find their places, whatever their kind", async t => {
  const piece = (jsonPath: string, value: object, more = false) => ({
    jsonPath,
    ...value,
    ...(more ? { willContinue: true } : {}),
  })
  const body = partial(
    { name: "f", willContinue: true },
    { partialArgs: [piece("$.a.b[0]", { stringValue: "x" }, true)], willContinue: true },
    {
      partialArgs: [piece("$.a.b[0]", { stringValue: "y" }), piece("$.a.b[1]", { numberValue: 2 })],
      willContinue: true,
    },
    { partialArgs: [piece("$['c d']", { boolValue: false }), piece("$.n", { nullValue: null })], willContinue: true },
    { partialArgs: [piece("$.__proto__.p", { stringValue: "z" })], willContinue: true },
    {},
  )
  const [choice] = assembled(chunksOf(body)).choices
  t.equal(choice?.calls[0]?.function.arguments, '{"a":{"b":["xy",2]},"c d":false,"n":null,"__proto__":{"p":"z"}}')
  t.equal(({} as { p?: unknown }).p, undefined)
})

t.test("a call that is open when the answer ends, or another begins, is closed", async t => {
  const piece = { jsonPath: "$.a", stringValue: "x", willContinue: true }
  const open = { name: "f", partialArgs: [piece], willContinue: true }
  const [choice] = assembled(chunksOf(partial(open, { name: "g", args: { b: 1 } }, open))).choices
  t.same(parsed(choice?.calls), [{ a: "x" }, { b: 1 }, { a: "x" }])
})

t.test("paths that cannot be followed are the vendor's fault", async t => {
  const deep = `$${".a".repeat(65)}`
  for (const jsonPath of ["", "$", "a", "x.a", "$.a[", "$.a[5]", "$[999999999]", "$.a..b", deep, undefined]) {
    const body = partial({ name: "f", willContinue: true }, { partialArgs: [{ jsonPath, stringValue: "x" }] })
    t.throws(() => chunksOf(body), { code: "upstream_unreadable" }, String(jsonPath))
  }
})
