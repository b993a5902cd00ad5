/** Conversations on the Messages wire: order of turns, tool calls and their results, content parts. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import t from "tap"
import {
  adaptiveModel,
  bodyFor,
  budgetModel,
  contextFor,
  messagesFor,
  type Sent,
  spoke,
} from "../fixtures/anthropic-chat.ts"

const call = (id: string, name = "look", args = "{}") => ({ id, type: "function", function: { name, arguments: args } })
const calls = (...ids: readonly string[]) => ({ role: "assistant", content: null, tool_calls: ids.map(id => call(id)) })
const result = (id: string, content: unknown = `of ${id}`) => ({ role: "tool", tool_call_id: id, content })
const user = (content: unknown) => ({ role: "user", content })
const assistant = (content: unknown) => ({ role: "assistant", content })
const text = (value: string) => ({ type: "text", text: value })
const refusedAt = (param: string) => ({ code: "invalid_request", param })

// ---- instructions ----

t.test("instructions at the start become the system text, in their order", async t => {
  const messages = [{ role: "system", content: "Be brief." }, { role: "developer", content: "Be kind." }, user("Hi")]
  const body = bodyFor({ messages })
  t.equal(body.system, "Be brief.\n\nBe kind.")
  t.same(body.messages, [{ role: "user", content: [text("Hi")] }])
})

t.test("cache markers keep the system text in its blocks, and stay on messages", async t => {
  const marker = { type: "ephemeral" }
  const messages = [
    { role: "system", content: [{ ...text("Long."), cache_control: marker }] },
    { role: "system", content: "Short." },
    { ...user("Hi"), cache_control: marker },
    { ...user([text("There"), text("again")]), cache_control: marker },
  ]
  const body = bodyFor({ messages })
  t.same(body.system, [{ ...text("Long."), cache_control: marker }, text("Short.")])
  const marked = (value: string) => ({ ...text(value), cache_control: marker })
  t.same(body.messages, [{ role: "user", content: [marked("Hi"), text("There"), marked("again")] }], "on the last part")
})

t.test("later instructions keep their place", async t => {
  const sent = messagesFor([
    user("One"),
    assistant("Two"),
    { role: "system", content: "Now in French." },
    user("Three"),
  ])
  t.same(sent, [
    { role: "user", content: [text("One")] },
    { role: "assistant", content: [text("Two")] },
    { role: "user", content: [text("<system>\nNow in French.\n</system>"), text("Three")] },
  ])
})

t.test("instructions that stand alone are what the user says", async t => {
  const body = bodyFor({ messages: [{ role: "system", content: "Tell a joke." }] })
  t.same([body.system, body.messages], [undefined, [{ role: "user", content: [text("Tell a joke.")] }]])
})

// ---- text ----

t.test("bug 15: empty text is left out, and a message that holds nothing else", async t => {
  const messages = [user("Hi"), assistant(""), user([text(" \n"), text("Again")]), assistant([text("")]), user("Then")]
  t.same(messagesFor(messages), [{ role: "user", content: [text("Hi"), text("Again"), text("Then")] }])
})

t.test("messages that hold nothing at all are refused", async t => {
  t.throws(() => messagesFor([user("")]), refusedAt("messages"))
  t.throws(() => messagesFor([{ role: "system", content: " " }]), refusedAt("messages"))
})

t.test("a conversation that begins with the assistant is opened by the user", async t => {
  const sent = messagesFor([assistant("Welcome!"), user("Hi")])
  t.same(
    sent.map(({ role }) => role),
    ["user", "assistant", "user"],
  )
})

t.test("a text to be continued loses its last spaces, unless the model continues none", async t => {
  const messages = [user("Hi"), assistant("The answer is ")]
  t.same(messagesFor(messages).at(-1), { role: "assistant", content: [text("The answer is")] })
  const refusing = { ...budgetModel, rules: { refuse: ["prefill"] } }
  t.throws(() => messagesFor(messages, refusing), refusedAt("messages"))
})

t.test("an assistant's refusal is text; reasoning that comes back unsigned is not", async t => {
  const spoken = { ...assistant(null), refusal: "I will not.", reasoning_content: "They asked for …" }
  t.same(messagesFor([user("Do"), spoken, user("Please")])[1], { role: "assistant", content: [text("I will not.")] })
  const parts = assistant([text("No: "), { type: "refusal", refusal: "never." }])
  t.same(messagesFor([user("Do"), parts, user("Please")])[1]?.content, [text("No: "), text("never.")])
})

// ---- tool calls and results ----

const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]

t.test("bug 17: results stand first, together, in the order of their calls, whatever order they came in", async t => {
  const sent = messagesFor([user("Go"), calls("a", "b"), user("Wait"), result("b"), result("a"), user("So?")])
  t.same(sent[2], {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "a", content: "of a" },
      { type: "tool_result", tool_use_id: "b", content: "of b" },
      text("Wait"),
      text("So?"),
    ],
  })
})

t.test("bug 16: an assistant turn in several messages is one turn, its calls last", async t => {
  const sent = messagesFor([user("Go"), calls("a"), assistant("One moment."), calls("b"), result("a"), result("b")])
  t.same(
    sent.map(({ role }) => role),
    ["user", "assistant", "user"],
  )
  t.same(
    sent[1]?.content.map(({ type, id }) => id ?? type),
    ["text", "a", "b"],
  )
})

t.test("bug 18: more results than calls are refused", async t => {
  t.throws(() => messagesFor([user("Go"), calls("a"), result("a"), result("a")]), refusedAt("messages[3].tool_call_id"))
  t.throws(() => messagesFor([user("Go"), result("a")]), refusedAt("messages[1].tool_call_id"))
})

t.test("bug 19: a result belongs to the preceding assistant turn only", async t => {
  const late = [user("Go"), calls("a"), result("a"), calls("b"), result("b"), result("a")]
  t.throws(() => messagesFor(late), refusedAt("messages[5].tool_call_id"))
  const split = [user("Go"), calls("a", "b"), result("a"), assistant("Hm."), result("b")]
  t.throws(() => messagesFor(split), { ...refusedAt("messages"), message: /'b'/ })
})

t.test("bug 8: a call without its result is refused before the vendor is asked", async t => {
  t.throws(() => messagesFor([user("Go"), calls("a", "b"), result("a"), user("So?")]), refusedAt("messages"))
  t.throws(() => messagesFor([user("Go"), calls("a")]), refusedAt("messages"))
})

t.test("bugs 9 and 43: ids that are empty, come again or hold other characters stay in pairs", async t => {
  const sent = messagesFor([
    user("Go"),
    calls("", ""),
    result("", "first"),
    result("", "second"),
    calls("functions.look:0"),
    result("functions.look:0", "third"),
    calls("functions.look:0"),
    result("functions.look:0", "fourth"),
  ])
  const used = sent.flatMap(({ content }) => content.flatMap(({ type, id }) => (type === "tool_use" ? [id] : [])))
  const answered = sent.flatMap(({ content }) =>
    content.flatMap(({ type, tool_use_id, content }) => (type === "tool_result" ? [[tool_use_id, content]] : [])),
  )
  t.equal(new Set(used).size, 4)
  t.ok(used.every(id => /^[a-zA-Z0-9_-]+$/.test(String(id))))
  t.same(
    answered,
    ["first", "second", "third", "fourth"].map((content, at) => [used[at], content]),
  )
})

t.test("arguments are an object: nothing is one without fields, broken JSON is kept as it was written", async t => {
  const written = ["", '{"a": 1}', '{"a": ', "[1]", "null"]
  const spoken = { role: "assistant", tool_calls: written.map((args, at) => call(`c${at}`, "look", args)) }
  const sent = messagesFor([user("Go"), spoken, ...written.map((_, at) => result(`c${at}`))])
  t.same(
    sent[1]?.content.map(({ input }) => input),
    [{}, { a: 1 }, { _raw: '{"a": ' }, { _raw: "[1]" }, { _raw: "null" }],
  )
})

t.test("a result may show images, say nothing, or say several things", async t => {
  const image = { type: "image_url", image_url: { url: "https://pictures.example/a.png" } }
  const sent = messagesFor([
    user("Go"),
    calls("a", "b", "c"),
    result("a", ""),
    result("b", [image]),
    result("c", [text("1"), text("2")]),
  ])
  t.same(sent[2]?.content, [
    { type: "tool_result", tool_use_id: "a" },
    {
      type: "tool_result",
      tool_use_id: "b",
      content: [{ type: "image", source: { type: "url", url: "https://pictures.example/a.png" } }],
    },
    { type: "tool_result", tool_use_id: "c", content: [text("1"), text("2")] },
  ])
})

t.test("the older form of calls and results is understood", async t => {
  const spoken = { role: "assistant", content: null, function_call: { name: "look", arguments: '{"at": 1}' } }
  const sent = messagesFor([user("Go"), spoken, { role: "function", name: "look", content: "seen" }])
  t.same(sent[1]?.content, [{ type: "tool_use", id: "function_look", name: "look", input: { at: 1 } }])
  t.same(sent[2]?.content, [{ type: "tool_result", tool_use_id: "function_look", content: "seen" }])
})

t.test("a conversation that called tools brings their definitions, and may call them no more", async t => {
  const body = bodyFor({ messages: [user("Go"), calls("a"), result("a")] })
  t.same(body.tools, [{ name: "look", input_schema: { type: "object", properties: {} } }])
  t.same(body.tool_choice, { type: "none" })
})

// ---- thinking that must come back ----

const thinking = { type: "thinking", thinking: "Let me look.", signature: "signed" }
const kept = (model = "vendor-model", blocks: readonly unknown[] = [thinking]) => JSON.stringify({ model, blocks })
const loop = [user("Go"), calls("a"), result("a")]
const withKept = (value: string) => ({ signatures: new Map([["a", value]]) })

t.test("kept thinking comes back first in its turn, unchanged, while the tool loop is open", async t => {
  const [, turn] = messagesFor(loop, adaptiveModel, withKept(kept()))
  t.same(turn?.content, [thinking, { type: "tool_use", id: "a", name: "look", input: {} }])
  const [, later] = messagesFor([...loop, assistant("Seen."), user("And?")], adaptiveModel, withKept(kept()))
  t.same(later?.content.length, 1)
})

t.test("signatures are never invented: what is not kept, signed and of this model does not come back", async t => {
  const unsigned = { type: "thinking", thinking: "Let me look.", signature: "" }
  for (const value of [kept("other-model"), kept("vendor-model", [unsigned]), "some signature of another wire", "{}"]) {
    const [, turn] = messagesFor(loop, adaptiveModel, withKept(value))
    t.same(turn?.content.length, 1, value)
  }
})

t.test("a model with budgets thinks on only when its loop began with thinking", async t => {
  const asked = { messages: loop, tools, reasoning_effort: "low" }
  t.same(bodyFor(asked, budgetModel, withKept(kept())).thinking, { type: "enabled", budget_tokens: 1_024 })
  t.equal(bodyFor(asked, budgetModel).thinking, undefined)
  const quiet = bodyFor({ messages: loop, tools }, budgetModel, withKept(kept())).messages as readonly Sent[]
  t.same(quiet[1]?.content.length, 1, "and brings no thinking where none was asked for")
})

// ---- content parts ----

const base64 = (bytes: readonly number[] | string) => Buffer.from(bytes as string).toString("base64")
const png = base64([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 0])
const jpeg = base64([0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0])
const image = (url: unknown) => [{ type: "image_url", image_url: { url, detail: "high" } }]
const onlyBlock = (part: unknown) => messagesFor([user([part])])[0]?.content[0]

t.test("an image is what its bytes say, whatever its data URL declares", async t => {
  const source = (media_type: string, data: string) => ({ type: "image", source: { type: "base64", media_type, data } })
  const cases: readonly (readonly [string, string, string])[] = [
    ["image/png", jpeg, "image/jpeg"],
    ["image/jpg", jpeg, "image/jpeg"],
    ["application/octet-stream", png, "image/png"],
    ["image/jpeg", base64("GIF89a......"), "image/gif"],
    ["image/png", base64("RIFF....WEBPVP8 "), "image/webp"],
    ["image/jpg", base64("unknown bytes"), "image/jpeg"],
  ]
  for (const [declared, data, type] of cases) {
    t.same(messagesFor([user(image(`data:${declared};base64,${data}`))])[0]?.content, [source(type, data)])
  }
})

t.test("an image by https is fetched by the vendor; any other address is refused", async t => {
  const url = "https://pictures.example/a.png"
  t.same(messagesFor([user(image(url))])[0]?.content, [{ type: "image", source: { type: "url", url } }])
  const bad = [
    "http://pictures.example/a.png",
    "file:///a",
    "a.png",
    "",
    undefined,
    "data:image/png,abc",
    "data:;base64,",
  ]
  for (const url of [
    ...bad,
    `data:image/svg+xml;base64,${base64("<svg/>")}`,
    `data:image/png;base64,${base64("%PDF-1.7")}`,
  ]) {
    t.throws(() => messagesFor([user(image(url))]), refusedAt("messages[0].content[0].image_url.url"), String(url))
  }
})

t.test("files: PDF and text are documents, anything else is refused", async t => {
  const file = (fields: Record<string, unknown>) => ({ type: "file", file: fields })
  const pdf = base64("%PDF-1.7 ...")
  t.same(onlyBlock(file({ file_data: `data:application/octet-stream;base64,${pdf}`, filename: "a.pdf" })), {
    type: "document",
    source: { type: "base64", media_type: "application/pdf", data: pdf },
    title: "a.pdf",
  })
  t.same(onlyBlock(file({ file_data: `data:text/markdown;base64,${base64("# Grüße")}` })), {
    type: "document",
    source: { type: "text", media_type: "text/plain", data: "# Grüße" },
  })
  const at = "messages[0].content[0].file"
  t.throws(() => onlyBlock(file({ file_id: "file-1" })), refusedAt(`${at}.file_id`))
  t.throws(() => onlyBlock(file({ file_data: pdf })), refusedAt(`${at}.file_data`))
  t.throws(() => onlyBlock(file({})), refusedAt(`${at}.file_data`))
  t.throws(
    () => onlyBlock(file({ file_data: `data:application/zip;base64,${base64("PK..")}` })),
    refusedAt(`${at}.file_data`),
  )
})

t.test("audio and unknown parts are refused at their place", async t => {
  const at = refusedAt("messages[0].content[1]")
  for (const type of ["input_audio", "video_url", "", "toString"]) {
    t.throws(() => messagesFor([user([text("Listen"), { type }])]), at, type)
  }
  for (const said of [assistant, (content: unknown) => ({ role: "system", content })]) {
    const picture = image("https://pictures.example/a.png")
    t.throws(() => messagesFor([user("Look"), said(picture)]), refusedAt("messages[1].content[0]"))
  }
  t.throws(
    () => messagesFor([user("Hi"), { ...assistant(null), audio: { id: "audio-1" } }]),
    refusedAt("messages[1].audio"),
  )
})

// ---- any conversation ----

const words = fc.string({ minLength: 1, maxLength: 6 }).filter(value => value.trim() !== "")

interface Round {
  readonly system: boolean
  readonly asked: readonly string[]
  readonly said: string
  readonly results: readonly string[]
  readonly shuffled: number
  readonly also: string
}

const rounds = fc.array(
  fc.record<Round>({
    system: fc.boolean(),
    asked: fc.array(words, { maxLength: 2 }),
    said: fc.oneof(fc.constant(""), words),
    results: fc.array(words, { maxLength: 3 }),
    shuffled: fc.nat(2),
    also: fc.oneof(fc.constant(""), words),
  }),
  { minLength: 1, maxLength: 5 },
)

/** A conversation that OpenAI's API takes: every call has one result before the next turn. */
const conversation = (all: readonly Round[]): Record<string, unknown>[] =>
  all.flatMap(({ system, asked, said, results, shuffled, also }, round) => {
    const ids = results.map((_, at) => `c${(round * 7 + at) % 4}`)
    const turns = results.map((content, at) => result(ids[at]!, content))
    const moved = [...turns.slice(shuffled), ...turns.slice(0, shuffled)]
    return [
      ...asked.map(content => (system ? { role: "system", content } : user(content))),
      { role: "assistant", content: said, ...(ids.length > 0 ? { tool_calls: ids.map(id => call(id)) } : {}) },
      ...moved,
      user(also),
    ]
  })

/** The vendor's rules of order; each broken one is told. */
const broken = (messages: readonly Sent[]): readonly string[] => {
  const problems: string[] = []
  if (messages[0]?.role !== "user") problems.push("the user is not first")
  const ids = new Set<unknown>()
  for (const [at, { role, content }] of messages.entries()) {
    const kinds = content.map(({ type }) => type)
    if (content.length === 0) problems.push("empty content")
    if (messages[at - 1]?.role === role) problems.push("two turns of one role")
    if (content.some(({ type, text }) => type === "text" && String(text).trim() === "")) problems.push("empty text")
    if (kinds.lastIndexOf("tool_result") > kinds.findIndex(kind => kind !== "tool_result") && kinds.includes("text")) {
      problems.push("a result after other content")
    }
    const used = content.filter(({ type }) => type === "tool_use").map(({ id }) => id)
    const next = messages[at + 1]?.content.filter(({ type }) => type === "tool_result") ?? []
    if (String(next.map(({ tool_use_id }) => tool_use_id)) !== String(used)) problems.push("results do not match calls")
    for (const id of used) {
      if (ids.has(id)) problems.push("an id twice")
      ids.add(id)
    }
  }
  return problems
}

t.test("any conversation that OpenAI takes obeys the vendor's order, and no text is lost", async () => {
  fc.assert(
    fc.property(rounds, all => {
      const messages = [...conversation(all), user("So?")]
      const body = spoke.request({ model: "some-model", messages }, contextFor()).body
      const sent = body.messages as readonly Sent[]
      const problems = broken(sent)
      if (problems.length > 0) throw new Error(problems.join(", "))
      const told = JSON.stringify([body.system ?? "", sent])
      const texts = messages.map(({ content }) => String(content)).filter(content => content.trim() !== "")
      for (const text of texts) {
        // A text to be continued loses its last spaces.
        if (!told.includes(JSON.stringify(text.trimEnd()).slice(1, -1)))
          throw new Error(`lost: ${JSON.stringify(text)}`)
      }
    }),
    { numRuns: 300 },
  )
})

t.test("a conversation stays the same text when more is added: the vendor's cache can be used", async t => {
  const digest = (messages: readonly Sent[]) => createHash("sha256").update(JSON.stringify(messages)).digest("hex")
  const start = [user("Go"), calls("x.1"), result("x.1"), assistant("Seen."), user("More")]
  const longer = messagesFor([...start, assistant("Yes."), user("Thanks")])
  t.equal(digest(longer.slice(0, 5)), digest(messagesFor(start)))
})
