/** Fields of a chat request on the Messages wire: translated, left out because they change nothing, or refused by name. */
import t from "tap"
import adapter from "../../plugins/vendors/anthropic/index.ts"
import { adaptiveModel, bodyFor, budgetModel, contextFor, hello, spoke, wholeOf } from "../fixtures/anthropic-chat.ts"

const refused = (param: string) => ({ code: "invalid_request", param })

t.test("a plain request is the vendor's smallest one", async t => {
  const { path, body, headers } = spoke.request(hello, contextFor())
  t.same([path, headers], ["/v1/messages", undefined])
  t.same(body, {
    model: "vendor-model",
    max_tokens: 64_000,
    messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
  })
  t.same(adapter.defaults, { "anthropic-version": "2023-06-01" }, "the version is the adapter's")
  t.equal(spoke.api in adapter.apis, true)
})

t.test("a stream is asked for as one; the vendor knows no stream options", async t => {
  t.match(bodyFor({ stream: true, stream_options: { include_usage: true } }), {
    stream: true,
    stream_options: undefined,
  })
  t.equal(bodyFor({ stream: false }).stream, undefined)
})

t.test("what the wire cannot express is refused by its name", async t => {
  const fields = {
    frequency_penalty: 0.5,
    presence_penalty: -1,
    logit_bias: { "50256": -100 },
    logprobs: true,
    top_logprobs: 3,
    n: 2,
    modalities: ["text", "audio"],
    audio: { format: "mp3", voice: "alloy" },
    web_search_options: { search_context_size: "low" },
    moderation: { model: "m" },
    functions: [{ name: "f" }],
    function_call: "auto",
    thinking_budget: 1_024,
    thinking_level: "low",
    some_new_field: 1,
    constructor: 1,
  }
  for (const [name, value] of Object.entries(fields)) t.throws(() => bodyFor({ [name]: value }), refused(name), name)
})

t.test("values that ask for nothing, and hints, are left out", async t => {
  const idle = {
    frequency_penalty: 0,
    presence_penalty: 0,
    logit_bias: {},
    logprobs: false,
    top_logprobs: null,
    n: 1,
    modalities: ["text"],
    functions: [],
    store: true,
    metadata: { a: "b" },
    service_tier: "auto",
    prediction: { type: "content", content: "x" },
    verbosity: "low",
    seed: 1,
    prompt_cache_key: "k",
    response_format: { type: "text" },
    parallel_tool_calls: true,
    tool_choice: "none",
    reasoning_effort: null,
    tools: null,
    stop: null,
    temperature: null,
  }
  t.same(bodyFor(idle), bodyFor())
})

// ---- limits and sampling ----

t.test("the limit is the client's, at most the model's; the newer name wins", async t => {
  t.equal(bodyFor({ max_tokens: 100 }).max_tokens, 100)
  t.equal(bodyFor({ max_tokens: 100, max_completion_tokens: 200 }).max_tokens, 200)
  t.equal(bodyFor({ max_tokens: 1_000_000 }).max_tokens, 64_000)
  const { maxOutput, ...unknown } = budgetModel
  t.equal(bodyFor({}, unknown).max_tokens, 8_192)
  t.equal(bodyFor({ max_tokens: 100_000 }, unknown).max_tokens, 100_000)
})

t.test("temperature is clamped to the vendor's scale, and wins over top_p unless it says nothing", async t => {
  const { temperature, top_p, top_k } = bodyFor({ temperature: 1.7, top_k: 5 })
  t.same([temperature, top_p, top_k], [1, undefined, 5])
  t.match(bodyFor({ temperature: 0, top_p: 0.5 }), { temperature: 0, top_p: undefined })
  t.match(bodyFor({ temperature: 1, top_p: 0.5 }), { temperature: undefined, top_p: 0.5 })
  t.match(bodyFor({ top_p: 0.5 }), { temperature: undefined, top_p: 0.5 })
})

t.test("models that refuse sampling get none of it", async t => {
  t.equal(bodyFor({ temperature: 1 }, adaptiveModel).temperature, undefined)
  t.throws(() => bodyFor({ temperature: 0.2 }, adaptiveModel), refused("temperature"))
  t.throws(() => bodyFor({ top_p: 0.2 }, adaptiveModel), refused("top_p"))
  t.throws(() => bodyFor({ top_k: 2 }, adaptiveModel), refused("top_k"))
})

t.test("thinking leaves no room for sampling", async t => {
  const thinking = { reasoning_effort: "low" }
  t.throws(() => bodyFor({ ...thinking, temperature: 0.5 }), refused("temperature"))
  t.throws(() => bodyFor({ ...thinking, top_k: 5 }), refused("top_k"))
  t.throws(() => bodyFor({ ...thinking, top_p: 0.9 }), refused("top_p"))
  t.match(bodyFor({ ...thinking, temperature: 1.5, top_p: 0.97 }), { temperature: undefined, top_p: 0.97 })
})

t.test("stop sequences without a visible character are left out", async t => {
  t.same(bodyFor({ stop: "END" }).stop_sequences, ["END"])
  t.same(bodyFor({ stop: ["", "\n", "###"] }).stop_sequences, ["###"])
  t.equal(bodyFor({ stop: ["\n"] }).stop_sequences, undefined)
})

t.test("the user's id goes along, but never what could be a name or an address", async t => {
  t.same(bodyFor({ user: "u-1" }).metadata, { user_id: "u-1" })
  t.same(bodyFor({ user: "u-1", safety_identifier: "s-1" }).metadata, { user_id: "s-1" })
  for (const user of ["jane@example.com", "Jane Doe", "u".repeat(300)]) {
    const { user_id } = bodyFor({ user }).metadata as { readonly user_id: string }
    t.match(user_id, /^[0-9a-f]{64}$/)
    t.same(bodyFor({ user }).metadata, { user_id }, "the same user stays the same id")
  }
})

// ---- thinking ----

t.test("models with budgets think by them, within the client's limit", async t => {
  const thinking = (fields: Record<string, unknown>) => bodyFor(fields).thinking
  t.same(thinking({ reasoning_effort: "medium" }), { type: "enabled", budget_tokens: 8_192 })
  t.same(thinking({ reasoning_effort: "xhigh" }), { type: "enabled", budget_tokens: 24_576 })
  t.same(thinking({ reasoning_effort: "minimal" }), { type: "enabled", budget_tokens: 1_024 })
  t.same(thinking({ reasoning_effort: "high", max_tokens: 4_000 }), { type: "enabled", budget_tokens: 3_999 })
  t.equal(thinking({ reasoning_effort: "high", max_tokens: 1_024 }), undefined, "no room to think")
  t.equal(thinking({ reasoning_effort: "none" }), undefined)
  t.equal(bodyFor({ reasoning_effort: "low" }).output_config, undefined)
})

t.test("other models measure their thinking themselves", async t => {
  const { thinking, output_config } = bodyFor({ reasoning_effort: "xhigh" }, adaptiveModel)
  t.same([thinking, output_config], [{ type: "adaptive", display: "summarized" }, { effort: "xhigh" }])
  const three = { ...adaptiveModel, rules: { efforts: ["low", "medium", "high", "max"] } }
  t.match(bodyFor({ reasoning_effort: "xhigh" }, three).output_config, { effort: "max" })
  t.match(bodyFor({ reasoning_effort: "minimal" }, three).output_config, { effort: "low" })
})

t.test("no effort: thinking is disabled where that is offered, else as small as can be", async t => {
  const { thinking, output_config } = bodyFor({ reasoning_effort: "none" }, adaptiveModel)
  t.same([thinking, output_config], [undefined, { effort: "low" }])
  const quiet = { ...adaptiveModel, rules: { efforts: ["none", "low"] } }
  t.match(bodyFor({ reasoning_effort: "none" }, quiet), { thinking: { type: "disabled" }, output_config: undefined })
})

t.test("the vendor's own thinking field passes as it is", async t => {
  const thinking = { type: "enabled", budget_tokens: 2_000 }
  t.same(bodyFor({ thinking }).thinking, thinking)
  t.match(bodyFor({ thinking: { type: "adaptive" }, reasoning_effort: "low" }, adaptiveModel), {
    thinking: { type: "adaptive" },
    output_config: { effort: "low" },
  })
  t.throws(() => bodyFor({ thinking: "much" }), refused("thinking"))
})

t.test("an effort that nobody knows, or a model that does not think, is refused", async t => {
  t.throws(() => bodyFor({ reasoning_effort: "extreme" }), refused("reasoning_effort"))
  t.throws(
    () => bodyFor({ reasoning_effort: "low" }, { ...budgetModel, capabilities: [] }),
    refused("reasoning_effort"),
  )
})

// ---- tools ----

const parameters = { type: "object", properties: { at: { type: "string", minLength: 1 } }, required: ["at"] }
const tool = (name: string, more: Record<string, unknown> = {}) => ({ type: "function", function: { name, ...more } })
const tools = [tool("look", { description: "Looks.", parameters }), tool("go")]

t.test("functions are tools, with a schema that is an object's", async t => {
  const marker = { type: "ephemeral" }
  const all = [
    ...tools,
    { ...tool("stay", { parameters: { $schema: "http://json-schema.org" } }), cache_control: marker },
  ]
  const empty = { type: "object", properties: {} }
  t.same(bodyFor({ tools: all }).tools, [
    { name: "look", description: "Looks.", input_schema: parameters },
    { name: "go", input_schema: empty },
    { name: "stay", input_schema: empty, cache_control: marker },
  ])
})

t.test("strict tools are closed where the model can be held to them", async t => {
  const strict = { tools: [tool("look", { parameters, strict: true })] }
  t.same(bodyFor(strict, adaptiveModel).tools, [
    {
      name: "look",
      input_schema: {
        type: "object",
        properties: { at: { type: "string", description: "(minLength: 1)" } },
        required: ["at"],
        additionalProperties: false,
      },
      strict: true,
    },
  ])
  t.same(bodyFor(strict, budgetModel).tools, [{ name: "look", input_schema: parameters }])
})

t.test("names that the vendor refuses travel under aliases that take no one's place, and come back", async t => {
  const long = "n".repeat(80)
  const names = ["files.read", "files_read", "файл", long, `${long}2`]
  const history = [
    { role: "user", content: "Go" },
    {
      role: "assistant",
      tool_calls: [{ id: "a", type: "function", function: { name: "files.read", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "a", content: "done" },
  ]
  const request = { model: "some-model", messages: history, tools: names.map(name => tool(name)) }
  const { body, memo } = spoke.request({ ...request, tool_choice: tool("files.read") }, contextFor())
  const sent = (body.tools as { readonly name: string }[]).map(({ name }) => name)
  t.ok(sent.every(name => /^[a-zA-Z0-9_-]{1,64}$/.test(name)))
  t.equal(new Set(sent).size, names.length)
  t.equal(sent[1], "files_read", "a good name stays")
  t.match(body, { tool_choice: { type: "tool", name: sent[0] }, messages: [{}, { content: [{ name: sent[0] }] }] })
  const content = sent.map((name, at) => ({ type: "tool_use", id: `t${at}`, name, input: {} }))
  t.same(
    wholeOf({ type: "message", content, stop_reason: "tool_use" }, contextFor(), memo).calls.map(({ name }) => name),
    names,
  )
})

t.test("the choice of tools, and whether several may be called at once", async t => {
  const choice = (tool_choice: unknown, more: Record<string, unknown> = {}) =>
    bodyFor({ tools, tool_choice, ...more }).tool_choice
  const single = { parallel_tool_calls: false }
  t.same(choice("auto"), { type: "auto" })
  t.same(choice("none"), { type: "none" })
  t.same(choice("required"), { type: "any" })
  t.same(choice({ type: "function", function: { name: "go" } }), { type: "tool", name: "go" })
  t.same(choice(undefined, single), { type: "auto", disable_parallel_tool_use: true })
  t.same(choice("required", single), { type: "any", disable_parallel_tool_use: true })
  t.same(choice("none", single), { type: "none" })
})

t.test("allowed tools are the only ones that are sent", async t => {
  const allowed = (mode: string) => ({ type: "allowed_tools", allowed_tools: { mode, tools: [tool("go")] } })
  t.match(bodyFor({ tools, tool_choice: allowed("required") }), {
    tools: [{ name: "go" }],
    tool_choice: { type: "any" },
  })
  t.match(bodyFor({ tools, tool_choice: allowed("auto") }), { tools: [{ name: "go" }], tool_choice: { type: "auto" } })
})

t.test("tools and choices that cannot be met are refused", async t => {
  t.throws(() => bodyFor({ tools: [{ type: "custom", custom: { name: "x" } }] }), refused("tools[0].type"))
  t.throws(() => bodyFor({ tools: [tool("a"), tool("")] }), refused("tools[1].function.name"))
  t.throws(() => bodyFor({ tool_choice: "required" }), refused("tool_choice"))
  t.throws(() => bodyFor({ tools, tool_choice: tool("other") }), refused("tool_choice"))
  t.throws(() => bodyFor({ tools, tool_choice: "always" }), refused("tool_choice"))
})

t.test("a model that refuses to be forced is not asked; any other stops thinking by a budget for it", async t => {
  const free = { ...adaptiveModel, rules: { ...adaptiveModel.rules, refuse: ["tool_choice"] } }
  for (const tool_choice of ["required", tool("go")]) {
    t.throws(() => bodyFor({ tools, tool_choice }, free), refused("tool_choice"))
    t.equal(bodyFor({ tools, tool_choice, reasoning_effort: "low" }).thinking, undefined)
    t.ok(bodyFor({ tools, tool_choice, reasoning_effort: "low" }, adaptiveModel).thinking)
  }
  t.match(bodyFor({ tools, tool_choice: "auto" }, free), { tool_choice: { type: "auto" } })
})

// ---- the form of the answer ----

const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
}
const format = { type: "json_schema", json_schema: { name: "answer", description: "A city.", schema, strict: true } }

t.test("models with structured outputs are given the schema, closed, with its bounds in words", async t => {
  const loose = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      minimum: { type: "integer", minimum: 1, maximum: 9, description: "A number." },
      list: { type: "array", minItems: 2, items: { $ref: "#/$defs/one" } },
      kept: { enum: [{ minimum: 1 }], default: { a: 1 } },
      either: {
        anyOf: [
          { type: ["object", "null"], properties: {} },
          { type: "string", maxLength: 3 },
        ],
      },
    },
    $defs: { one: { type: "object", additionalProperties: { type: "string", minLength: 1 } } },
  }
  const request = {
    response_format: { type: "json_schema", json_schema: { name: "a", schema: loose } },
    reasoning_effort: "low",
  }
  const body = bodyFor(request, adaptiveModel)
  t.same(body.output_config, {
    effort: "low",
    format: {
      type: "json_schema",
      schema: {
        type: "object",
        properties: {
          minimum: { type: "integer", description: "A number. (minimum: 1, maximum: 9)" },
          list: { type: "array", items: { $ref: "#/$defs/one" }, description: "(minItems: 2)" },
          kept: { enum: [{ minimum: 1 }], default: { a: 1 } },
          either: {
            anyOf: [
              { type: ["object", "null"], properties: {}, additionalProperties: false },
              { type: "string", description: "(maxLength: 3)" },
            ],
          },
        },
        $defs: { one: { type: "object", additionalProperties: { type: "string", description: "(minLength: 1)" } } },
        additionalProperties: false,
      },
    },
  })
  t.equal(body.tools, undefined)
})

t.test("other models answer by a tool, whose input is the content", async t => {
  const { body, memo } = spoke.request({ ...hello, response_format: format }, contextFor())
  t.same(body.tools, [{ name: "json", description: "A city.", input_schema: schema }])
  const bare = bodyFor({ response_format: { type: "json_schema", json_schema: { schema } } })
  t.match(bare.tools, [{ description: /./ }], "the model is told what the tool is for, although the client did not say")
  t.same(body.tool_choice, { type: "tool", name: "json", disable_parallel_tool_use: true })
  const answer = {
    type: "message",
    content: [{ type: "tool_use", id: "t", name: "json", input: { city: "Bonn" } }],
    stop_reason: "tool_use",
  }
  t.match(wholeOf(answer, contextFor(), memo), { content: '{"city":"Bonn"}', calls: [], finish: "stop" })
})

t.test("beside the client's own tools the answer's tool is one more, and takes no one's name", async t => {
  const request = { ...hello, response_format: format, tools: [tool("json")] }
  const { body, memo } = spoke.request(request, contextFor())
  t.match(body, { tools: [{ name: "json" }, { name: "json_2" }], tool_choice: { type: "any" } })
  const answer = {
    type: "message",
    content: [{ type: "tool_use", id: "t", name: "json", input: {} }],
    stop_reason: "tool_use",
  }
  t.match(wholeOf(answer, contextFor(), memo), { content: "", calls: [{ name: "json" }], finish: "tool_calls" })
  t.match(spoke.request({ ...request, tool_choice: "none" }, contextFor()).body, {
    tool_choice: { type: "tool", name: "json_2" },
  })
  t.match(spoke.request({ ...request, tool_choice: "required" }, contextFor()).body.tools, [{ name: "json" }])
})

t.test("a model that can be neither held nor forced is asked in words", async t => {
  const rules = { refuse: ["tool_choice"] }
  const body = bodyFor({ response_format: format }, { ...budgetModel, rules })
  t.equal(body.tools, undefined)
  t.match(body.system, JSON.stringify(schema))
})

t.test("any JSON object is asked for in words, after the client's instructions", async t => {
  const messages = [{ role: "system", content: "Be brief." }, ...hello.messages]
  t.match(bodyFor({ messages, response_format: { type: "json_object" } }).system, /^Be brief\.\n\n.*JSON/)
  t.throws(() => bodyFor({ response_format: { type: "grammar" } }), refused("response_format"))
})

t.test("an automatic cache marker goes along", async t => {
  t.same(bodyFor({ cache_control: { type: "ephemeral" } }).cache_control, { type: "ephemeral" })
})
