/** Messages requests for models of other wires: what the chat hub is asked. */
import fc from "fast-check"
import t from "tap"
import type { JsonObject, Model } from "../../core/index.ts"
import { chatRequest } from "../../plugins/messages/hub/index.ts"

const model: Model = {
  name: "other-model",
  type: "llm",
  family: "other",
  targets: [{ vendor: "other", model: "theirs" }],
  maxOutput: 16_000,
  created: 0,
  rules: { efforts: ["none", "low", "medium", "high"] },
  messages: true,
  offered: true,
  capabilities: ["tools", "reasoning"],
  aliases: [],
}

const user = (content: unknown) => ({ role: "user", content })
const assistant = (content: unknown) => ({ role: "assistant", content })
const text = (told: string) => ({ type: "text", text: told })
const use = (id: unknown, name = "look", input: unknown = { at: 1 }) => ({ type: "tool_use", id, name, input })
const result = (tool_use_id: unknown, content: unknown = `of ${tool_use_id}`, more = {}) => ({
  type: "tool_result",
  tool_use_id,
  content,
  ...more,
})
const hello = [user("Hello")]
const requestFor = (fields: JsonObject = {}, of: Model = model) =>
  chatRequest({ model: "other-model", max_tokens: 100, messages: hello, ...fields }, of)
const messagesFor = (...messages: readonly JsonObject[]) => requestFor({ messages }).messages
const refused = (param: string) => ({ code: "invalid_request", param })

t.test("a plain request", async t => {
  t.same(requestFor({ max_tokens: 64_000 }), {
    model: "other-model",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 16_000,
  })
})

t.test("bug 25: a stream always asks for usage", async t => {
  const { stream, stream_options } = requestFor({ stream: true })
  t.same([stream, stream_options], [true, { include_usage: true }])
})

// ---- conversations ----

t.test("the system text is the first message, without a line that changes with every call", async t => {
  const system = [
    text("x-anthropic-billing-header: cc_version=1; cch=abc;"),
    { ...text("Be brief."), cache_control: {} },
  ]
  t.same(requestFor({ system }).messages[0], { role: "system", content: "Be brief." })
  t.same(requestFor({ system: "Be kind." }).messages[0], { role: "system", content: "Be kind." })
})

t.test("bug 8: results stand directly after their calls, before all that the user says", async t => {
  const mixed = [text("And?"), result("b"), text("Well?"), result("a")]
  t.same(messagesFor(user("Go"), assistant([text("Now."), use("a"), use("b")]), user(mixed)).slice(1), [
    {
      role: "assistant",
      content: "Now.",
      tool_calls: ["a", "b"].map(id => ({ id, type: "function", function: { name: "look", arguments: '{"at":1}' } })),
    },
    { role: "tool", tool_call_id: "a", content: "of a" },
    { role: "tool", tool_call_id: "b", content: "of b" },
    { role: "user", content: "And?\n\nWell?" },
  ])
})

t.test("bug 17: what tools show follows all results", async t => {
  const source = { type: "base64", media_type: "image/png", data: "AAAA" }
  const shown = [text("Here:"), { type: "image", source }]
  const sent = messagesFor(user("Go"), assistant([use("a"), use("b")]), user([result("a", shown), result("b", "")]))
  t.same(sent.slice(2), [
    { role: "tool", tool_call_id: "a", content: "Here:" },
    { role: "tool", tool_call_id: "b", content: "(no output)" },
    { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
  ])
})

t.test("turns in several messages are one: results may come in two, instructions in between", async t => {
  const sent = messagesFor(
    user("Go"),
    assistant([use("a")]),
    assistant([text("And."), use("b")]),
    { role: "system", content: "In French." },
    user([result("b")]),
    user([result("a"), text("So?")]),
  )
  t.same(
    sent.map(({ role, tool_call_id }) => tool_call_id ?? role),
    ["user", "assistant", "a", "b", "system", "user"],
  )
})

t.test("an error says so", async t => {
  const sent = messagesFor(user("Go"), assistant([use("a")]), user([result("a", "No such file", { is_error: true })]))
  t.equal(sent[2]?.content, "Error: No such file")
})

t.test("bug 7: thoughts and the family's own tools never become text", async t => {
  const blocks = [
    { type: "thinking", thinking: "Secretly", signature: "s" },
    { type: "redacted_thinking", data: "secret" },
    { type: "server_tool_use", id: "srv", name: "web_search", input: {} },
    { type: "web_search_tool_result", tool_use_id: "srv", content: [] },
    text("Hello."),
  ]
  t.same(messagesFor(user("Hi"), assistant(blocks), user("Bye"))[1], { role: "assistant", content: "Hello." })
})

t.test(
  "bug 45: reasoning goes back beside its tool calls where the model's vendor wants it, and nowhere else",
  async t => {
    const thought = { type: "thinking", thinking: "Look first.", signature: "" }
    const messages = [user("Go"), assistant([thought, text("Well."), use("a")]), user([result("a")])]
    const talk = [...messages, assistant([thought, text("Done.")]), user("Thanks")]
    const back = { ...model, rules: { reasoning_back: true } }
    const [, called, , said] = requestFor({ messages: talk }, back).messages
    t.match(called, { content: "Well.", reasoning_content: "Look first.", tool_calls: [{ id: "a" }] })
    t.same(said, { role: "assistant", content: "Done." })
    t.notOk(JSON.stringify(messagesFor(...talk)).includes("Look first."))
  },
)

t.test("bug 9: a result without an id answers the first call that waits", async t => {
  const sent = messagesFor(
    user("Go"),
    assistant([use(""), use(undefined)]),
    user([result("", "1"), result(undefined, "2")]),
  )
  const [, turn, ...results] = sent as readonly JsonObject[]
  const ids = (turn!.tool_calls as readonly { readonly id: string }[]).map(({ id }) => id)
  t.equal(new Set(ids).size, 2)
  t.same(
    results.map(({ tool_call_id, content }) => [tool_call_id, content]),
    [
      [ids[0], "1"],
      [ids[1], "2"],
    ],
  )
})

t.test("bugs 18 and 19: a result that no call of the preceding turn waits for is refused", async t => {
  const at = (message: number, block: number) => refused(`messages[${message}].content[${block}].tool_use_id`)
  t.throws(() => messagesFor(user([result("a")])), at(0, 0))
  t.throws(() => messagesFor(user("Go"), assistant([use("a")]), user([result("a"), result("a")])), at(2, 1))
  const turns = [user("Go"), assistant([use("a")]), user([result("a")]), assistant([use("b")]), user([result("a")])]
  t.throws(() => messagesFor(...turns), at(4, 0))
})

t.test("a call without its result is refused", async t => {
  t.throws(() => messagesFor(user("Go"), assistant([use("a")]), user("So?")), refused("messages"))
  t.throws(() => messagesFor(user("Go"), assistant([use("a")])), refused("messages"))
})

t.test("bug 11: ids stay as they are, up to what OpenAI takes; longer ones stay in pairs", async t => {
  const long = `toolu_${"x".repeat(60)}`
  const sent = messagesFor(user("Go"), assistant([use("toolu_1"), use(long)]), user([result(long), result("toolu_1")]))
  const ids = (sent[1]!.tool_calls as readonly { readonly id: string }[]).map(({ id }) => id)
  t.equal(ids[0], "toolu_1")
  t.ok(ids[1]!.length <= 40)
  t.same(
    sent.slice(2).map(({ tool_call_id }) => tool_call_id),
    ids,
  )
})

t.test("images, documents and search results of a user", async t => {
  const blocks = [
    { type: "image", source: { type: "url", url: "https://pictures.example/a.png" } },
    { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "a.pdf" },
    { type: "document", source: { type: "text", media_type: "text/plain", data: "Long text." }, title: "Notes" },
    { type: "document", source: { type: "content", content: [text("Part.")] } },
    { type: "search_result", source: "https://a.example", title: "A", content: [text("Found.")] },
  ]
  t.same(messagesFor(user(blocks))[0]?.content, [
    { type: "image_url", image_url: { url: "https://pictures.example/a.png" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
    text("Notes\n\nLong text."),
    text("Part."),
    text("A\nhttps://a.example\nFound."),
  ])
})

t.test("what chat cannot show is refused at its place", async t => {
  const bad = (block: JsonObject) => () => messagesFor(user([text("See"), block]))
  t.throws(bad({ type: "container_upload", file_id: "f" }), refused("messages[0].content[0]"))
  t.throws(bad({ type: "image", source: { type: "file", file_id: "f" } }), refused("messages[0].content[0].source"))
  t.throws(bad({ type: "document", source: { type: "url", url: "https://a.example" } }), { code: "invalid_request" })
  t.throws(() => messagesFor({ role: "tool", content: "x" }), refused("messages[0].role"))
  t.throws(() => messagesFor(user("Go"), assistant([use("a", "")])), refused("messages[1].content[0].name"))
  t.throws(() => messagesFor(user("")), refused("messages"))
  t.throws(() => requestFor({ messages: "Hi" }), { code: "validation_failed" })
})

// ---- fields ----

t.test("tools and their choice", async t => {
  const tools = [
    { name: "look", description: "Looks.", input_schema: { type: "object" }, cache_control: {} },
    { type: "custom", name: "go" },
  ]
  const choice = (tool_choice: unknown) => requestFor({ tools, tool_choice }).tool_choice
  t.same(requestFor({ tools }).tools, [
    { type: "function", function: { name: "look", description: "Looks.", parameters: { type: "object" } } },
    { type: "function", function: { name: "go", parameters: { type: "object", properties: {} } } },
  ])
  t.same(
    [choice({ type: "auto" }), choice({ type: "any" }), choice({ type: "none" }), choice(undefined)],
    ["auto", "required", "none", undefined],
  )
  t.same(choice({ type: "tool", name: "go" }), { type: "function", function: { name: "go" } })
  t.throws(() => choice({ type: "tool" }), refused("tool_choice"))
  t.throws(() => requestFor({ tools: [{ type: "web_search_20250305", name: "web_search" }] }), refused("tools[0].type"))
})

t.test("bug 20: parallel calls are spoken of only when a client forbids them", async t => {
  const tools = [{ name: "look" }]
  t.notOk("parallel_tool_calls" in requestFor({ tools, tool_choice: { type: "auto" } }))
  t.notOk("parallel_tool_calls" in requestFor({ tool_choice: { type: "auto", disable_parallel_tool_use: true } }))
  t.equal(
    requestFor({ tools, tool_choice: { type: "auto", disable_parallel_tool_use: true } }).parallel_tool_calls,
    false,
  )
})

t.test("thinking becomes an effort that the model offers; a model that does not think is not asked", async t => {
  const effort = (fields: JsonObject, of?: Model) => requestFor(fields, of).reasoning_effort
  const budget = (budget_tokens: number) => effort({ thinking: { type: "enabled", budget_tokens } })
  t.same([budget(2_048), budget(2_049), budget(16_384), budget(32_000)], ["low", "medium", "medium", "high"])
  t.equal(effort({ thinking: { type: "adaptive" }, output_config: { effort: "max" } }), "high")
  t.equal(effort({ thinking: { type: "adaptive" } }), undefined)
  t.equal(effort({ thinking: { type: "disabled" } }), "none")
  t.equal(effort({ thinking: { type: "disabled" } }, { ...model, rules: { efforts: ["low", "high"] } }), "low")
  t.equal(effort({ thinking: { type: "disabled" } }, { ...model, rules: {} }), undefined, "the catalog does not say")
  t.equal(effort({ output_config: { effort: "medium" } }, { ...model, rules: { efforts: ["low", "high"] } }), "high")
  t.equal(effort({ output_config: { effort: "high" } }, { ...model, capabilities: [] }), undefined)
})

t.test("the answer's schema is strict when it is one that chat calls strict", async t => {
  const format = (schema: JsonObject) =>
    requestFor({ output_config: { format: { type: "json_schema", schema } } }).response_format
  const closed = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false }
  const strict = { ...closed, required: ["a"] }
  t.same(format(strict), { type: "json_schema", json_schema: { name: "answer", schema: strict, strict: true } })
  for (const loose of [closed, {}, { ...strict, properties: { a: { type: "object" } } }]) {
    t.match(format(loose), { json_schema: { strict: false } })
  }
})

t.test("stops, user and hints", async t => {
  const { stop, user } = requestFor({
    stop_sequences: ["a", "", "b", "c", "d", "e"],
    metadata: { user_id: "u".repeat(200) },
  })
  t.same([stop, user], [["a", "b", "c", "d"], "u".repeat(64)])
  t.same(requestFor({ top_k: 5, service_tier: "auto", cache_control: {}, context_management: {} }), requestFor())
  t.throws(() => requestFor({ mcp_servers: [{}] }), refused("mcp_servers"))
  t.throws(() => requestFor({ container: "c" }), refused("container"))
})

t.test("words that would change the answer are refused when nobody knows them, not left out", async t => {
  const refusals: readonly (readonly [JsonObject, string])[] = [
    [{ output_config: { format: { type: "grammar" } } }, "output_config.format"],
    [{ output_config: { format: { type: "json_schema" } } }, "output_config.format"],
    [{ output_config: { effort: "banana" } }, "output_config.effort"],
    [{ tool_choice: { type: "any" } }, "tool_choice"],
    [{ tool_choice: { type: "tool", name: "look" }, tools: [] }, "tool_choice"],
  ]
  for (const [fields, param] of refusals) t.throws(() => requestFor(fields), refused(param), JSON.stringify(fields))
  t.throws(() => requestFor({ stop_sequences: "END" }), { code: "validation_failed" })
  t.same(requestFor({ tool_choice: { type: "none" } }), requestFor(), "no tools are chosen among none")
  t.same(requestFor({ stop_sequences: null, output_config: { format: null, effort: null } }), requestFor())
})

t.test("values have their types (422) and bounds (400), each named by the client's own word", async t => {
  const wrongTypes: readonly (readonly [JsonObject, string, string])[] = [
    [{ messages: undefined }, "messages", "missing"],
    [{ messages: "Hello" }, "messages", "list_type"],
    [{ max_tokens: undefined }, "max_tokens", "missing"],
    [{ max_tokens: null }, "max_tokens", "int_type"],
    [{ max_tokens: 1.5 }, "max_tokens", "int_type"],
    [{ temperature: "1" }, "temperature", "float_type"],
    [{ top_p: [] }, "top_p", "float_type"],
    [{ stop_sequences: "END" }, "stop_sequences", "list_type"],
  ]
  for (const [fields, param, type] of wrongTypes) {
    const expected = { code: "validation_failed", param, detail: [{ loc: ["body", param], type }] }
    t.throws(() => requestFor(fields), expected, JSON.stringify(fields))
  }
  for (const [param, value] of [
    ["max_tokens", 0],
    ["max_tokens", -1],
    ["temperature", -0.1],
    ["temperature", 1.1],
    ["top_p", -0.1],
    ["top_p", 1.1],
  ] as const) {
    t.throws(() => requestFor({ [param]: value }), refused(param), `${param} ${value}`)
  }
  t.match(requestFor({ max_tokens: 1, temperature: 0, top_p: 1 }), { max_tokens: 1, temperature: 0, top_p: 1 })
  t.same(requestFor({ temperature: null, top_p: null }), requestFor())
})

t.test("sampling that the model refuses is left to its default", async t => {
  const strict = { ...model, rules: { temperature: [1], refuse: ["top_p"] } }
  t.match(requestFor({ temperature: 0.2, top_p: 0.5 }), { temperature: 0.2, top_p: 0.5 })
  t.same(requestFor({ temperature: 0.2, top_p: 0.5 }, strict), requestFor({}, strict))
  t.equal(requestFor({ temperature: 1 }, strict).temperature, 1)
})

t.test("a model that refuses stop sequences is sent none", async t => {
  const refusing = { ...model, rules: { refuse: ["stop"] } }
  t.same(requestFor({ stop_sequences: ["a"] }, refusing), requestFor({}, refusing))
  t.same(requestFor({ stop_sequences: ["a"] }).stop, ["a"])
})

t.test("sampling is left out beside an effort that excludes it", async t => {
  const sampling = { temperature: 0.2, top_p: 0.5 }
  const sent = (fields: JsonObject, sampling_efforts: readonly string[]) => {
    const { temperature, top_p, reasoning_effort } = requestFor(
      { ...sampling, ...fields },
      { ...model, rules: { ...model.rules, sampling_efforts } },
    )
    return { temperature, top_p, reasoning_effort }
  }
  const none = { temperature: undefined, top_p: undefined }
  const thinking = { thinking: { type: "enabled", budget_tokens: 5_000 } }
  const off = { thinking: { type: "disabled" } }
  t.same(sent(thinking, ["none", "default"]), { ...none, reasoning_effort: "medium" })
  t.same(sent({}, ["none", "default"]), { ...sampling, reasoning_effort: undefined })
  t.same(sent(off, ["none", "default"]), { ...sampling, reasoning_effort: "none" })
  t.same(sent({}, ["none"]), { ...none, reasoning_effort: undefined }, "it thinks unless it is told not to")
  t.same(sent(off, ["none"]), { ...sampling, reasoning_effort: "none" })
  t.match(requestFor({ ...sampling, ...thinking }), sampling, "other models take both")
})

// ---- any conversation ----

const words = fc.string({ minLength: 1, maxLength: 6 })
const rounds = fc.array(
  fc.record({ said: words, results: fc.array(words, { maxLength: 3 }), also: words, apart: fc.boolean() }),
  { maxLength: 5 },
)

/** What OpenAI demands: each call answered at once, in any order, by one message of role tool. */
const isOrdered = (messages: readonly JsonObject[]): boolean => {
  let waiting: string[] = []
  for (const { role, tool_calls, tool_call_id } of messages) {
    if (role !== "tool" && waiting.length > 0) return false
    if (role === "tool" && !waiting.includes(String(tool_call_id))) return false
    waiting = waiting.filter(id => id !== tool_call_id)
    if (Array.isArray(tool_calls)) waiting.push(...tool_calls.map(({ id }) => id))
  }
  return waiting.length === 0
}

t.test("any conversation of the family is one that OpenAI takes, and no text is lost", async () => {
  fc.assert(
    fc.property(rounds, all => {
      const messages = all.flatMap(({ said, results, also, apart }, round) => {
        const ids = results.map((_, at) => `t${round}_${at}`)
        const blocks = [text(also), ...results.map((told, at) => result(ids[at], told)).reverse()]
        return [
          assistant([text(said), ...ids.map(id => use(id))]),
          ...(apart ? blocks.map(block => user([block])) : [user(blocks)]),
        ]
      })
      const sent = messagesFor(user("Go"), ...messages) as readonly JsonObject[]
      if (!isOrdered(sent)) throw new Error("results do not follow their calls")
      const told = sent.map(({ content }) => String(content)).join("\n")
      for (const { said, results, also } of all) {
        for (const one of [said, also, ...results])
          if (!told.includes(one)) throw new Error(`lost: ${JSON.stringify(one)}`)
      }
    }),
    { numRuns: 200 },
  )
})
