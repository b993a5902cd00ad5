/** Usage of chat completions, embeddings and Responses: what each count means, and what is counted where none is told. */
import t from "tap"
import adapter from "../../plugins/vendors/openai/index.ts"
import { meter } from "../fixtures/metering.ts"

const { chat, embeddings, responses, moderations } = adapter.apis

const whole = (answer: object) => ({ streamed: false, body: Buffer.from(JSON.stringify(answer)) })
const stream = (...chunks: (object | string)[]) => ({
  streamed: true,
  body: Buffer.from(
    chunks.map(chunk => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`).join(""),
  ),
})

t.test("cached, written and spoken tokens leave the input; the buckets add up to what was reported", async t => {
  const usage = {
    prompt_tokens: 1000,
    completion_tokens: 200,
    total_tokens: 1200,
    prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 100, audio_tokens: 50 },
    completion_tokens_details: { reasoning_tokens: 40, audio_tokens: 60 },
  }
  t.same(meter(chat, whole({ choices: [], usage })).usage, {
    input: 250,
    cache_read: 600,
    cache_write_5m: 100,
    audio_input: 50,
    output: 140,
    audio_output: 60,
    reasoning: 40,
  })
})

t.test("a wrapped usage counts when there is no other, and a later usage replaces an earlier one", async t => {
  const early = { choices: [], x_groq: { usage: { prompt_tokens: 5, completion_tokens: 1 } } }
  t.same(meter(chat, stream(early, "[DONE]")).usage, { input: 5, output: 1 })
  const late = {
    choices: [],
    usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } },
  }
  t.same(meter(chat, stream(early, late, { choices: [], usage: null }, "[DONE]")).usage, {
    input: 1,
    cache_read: 4,
    output: 3,
  })
  const empty = { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }
  t.same(meter(chat, stream(early, empty)).usage, { input: 5, output: 1 }, "zeros after counts tell nothing")
})

t.test(
  "bug 41: reasoning beside the completion is billed with it, reasoning inside of it is not billed twice",
  async t => {
    const usageOf = (completion_tokens: number, total_tokens: number, reasoning_tokens: number) => ({
      usage: { prompt_tokens: 12, completion_tokens, total_tokens, completion_tokens_details: { reasoning_tokens } },
    })
    for (const answer of [usageOf(2, 334, 320), usageOf(322, 334, 320)])
      t.same(meter(chat, whole(answer)).usage, { input: 12, output: 322, reasoning: 320 })
  },
)

t.test(
  "bugs 4 and 37: output of Responses counts once, whatever ids its items have and whether deltas came",
  async t => {
    const output = [{ type: "message", id: "c", content: [{ type: "output_text", text: "Hello" }] }]
    const deltas = ["Hel", "lo"].map((delta, at) => ({ type: "response.output_text.delta", item_id: `${at}`, delta }))
    const done = { type: "response.output_text.done", item_id: "b", text: "Hello" }
    const completed = { type: "response.completed", response: { id: "r", output } }
    for (const events of [[...deltas, done, completed], [done, completed], [completed]])
      t.equal(meter(responses, stream(...events)).outputBytes, 5)
  },
)

t.test("bug 47: a response that is queued in the background has no usage yet", async t => {
  const queued = { id: "resp_1", status: "queued", background: true, usage: null, output: [] }
  const { usage, id, outputBytes } = meter(responses, whole(queued))
  t.same({ usage, id, outputBytes }, { usage: undefined, id: "resp_1", outputBytes: 0 })
})

t.test("cached tokens are found under every name that vendors give them", async t => {
  const counts = { prompt_tokens: 10, completion_tokens: 1 }
  for (const more of [
    { prompt_tokens_details: { cached_tokens: 4 } },
    { prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 },
    { cached_tokens: 4 },
  ]) {
    const { usage } = meter(chat, whole({ choices: [], usage: { ...counts, ...more } }))
    t.same(usage, { input: 6, cache_read: 4, output: 1 }, JSON.stringify(more))
  }
})

t.test("a total tells what lies beside a completion only where both sides are told", async t => {
  const usageOf = (usage: object) => meter(chat, whole({ choices: [], usage })).usage
  t.same(usageOf({ completion_tokens: 7, total_tokens: 30 }), { output: 7 })
  t.same(usageOf({ prompt_tokens: 12, total_tokens: 30 }), { input: 12 })
  const thoughts = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 30 }
  t.same(usageOf(thoughts), { input: 12, output: 18, reasoning: 11 }, "thoughts without a name")
  const none = { completion_tokens_details: { reasoning_tokens: 0 } }
  t.same(usageOf({ ...thoughts, ...none }), { input: 12, output: 18, reasoning: 11 })
  const inside = { completion_tokens_details: { reasoning_tokens: 3 } }
  t.same(usageOf({ ...thoughts, ...inside }), { input: 12, output: 7, reasoning: 3 }, "what is told is inside")
})

t.test("a cost in ticks is dollars; what is no such number is no cost", async t => {
  const cost = (cost_in_usd_ticks: unknown) =>
    meter(chat, whole({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, cost_in_usd_ticks } })).usage
      ?.cost_dollars
  t.equal(cost(25_000_000), 0.0025)
  for (const odd of [0, -1, 1.5, 2 ** 53, "25", null, undefined]) t.equal(cost(odd), undefined, String(odd))
})

t.test("the tier that any chunk names is that of the answer", async t => {
  const chunks = [{ choices: [], service_tier: "priority" }, { choices: [] }, { choices: [], service_tier: null }]
  t.equal(meter(chat, stream(...chunks)).serviceTier, "priority")
})

t.test("the tier `auto` is what was asked for, and names none", async t => {
  t.equal(meter(chat, whole({ choices: [], service_tier: "auto" })).serviceTier, undefined)
  const events = (...tiers: readonly string[]) =>
    stream(...tiers.map(service_tier => ({ type: "response.created", response: { service_tier } })))
  t.equal(meter(responses, events("auto")).serviceTier, undefined)
  t.equal(meter(responses, events("auto", "default")).serviceTier, "default")
  t.equal(meter(responses, events("priority", "auto")).serviceTier, "priority")
})

t.test("counts that no answer can have are refused and noted", async t => {
  for (const bad of [-1, 1.5, 1e12, "12", true, {}, [3]]) {
    const found = meter(chat, whole({ choices: [], usage: { prompt_tokens: bad, completion_tokens: 7 } }))
    t.same(found.usage, { output: 7 }, JSON.stringify(bad))
    t.same(found.surprises, ["bad_count"])
  }
  const more = { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 99 } }
  t.match(meter(chat, whole({ usage: more })), { usage: { cache_read: 10, output: 1 }, surprises: ["part_over_total"] })
  t.match(meter(chat, whole({ usage: { prompt_tokens: Number.NaN } })).usage, undefined)
})

t.test("garbage is no usage and no exception", async t => {
  for (const body of [
    "",
    "null",
    "[]",
    "7",
    "<html>",
    '{"usage":[1]}',
    '{"choices":{"0":1}}',
    '{"choices":[null,3]}',
  ]) {
    for (const api of [chat, responses, embeddings, moderations]) {
      t.equal(meter(api, { streamed: false, body: Buffer.from(body) }).usage, undefined, body)
      t.equal(meter(api, stream(body)).usage, undefined, body)
    }
  }
  t.same(meter(chat, stream("{broken")).surprises, ["bad_json"])
})

t.test("output is counted in UTF-8 bytes: text, refusals, reasoning, tool arguments, once", async t => {
  const deltas = [
    { role: "assistant", content: "" },
    { content: "héllo" },
    { reasoning_content: "hm" },
    { refusal: "no" },
    { tool_calls: [{ index: 0, function: { name: "f", arguments: '{"a"' } }] },
    {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "abc" }] },
        { type: "text", text: "de" },
      ],
    },
    { tool_calls: [{ index: 1, type: "custom", custom: { name: "g", input: "abc" } }] },
    { function_call: { name: "f", arguments: "{}" } },
    { audio: { transcript: "word" } },
    {},
  ]
  const chunks = deltas.map(delta => ({ choices: [{ index: 0, delta, message: { content: "cumulative" } }] }))
  t.equal(meter(chat, stream(...chunks, "[DONE]")).outputBytes, 6 + 2 + 2 + 4 + 5 + 3 + 2 + 4)

  const delta = { type: "response.output_text.delta", delta: "héllo" }
  const done = { type: "response.output_text.done", text: "héllo" }
  const onlyDone = { type: "response.function_call_arguments.done", arguments: "{}" }
  t.equal(meter(responses, stream(delta, done)).outputBytes, 6)
  t.equal(meter(responses, stream(delta, done, onlyDone)).outputBytes, 6 + 2)
})

t.test("built-in tools of Responses are billed beside the counts", async t => {
  const tool_usage = { image_gen: { input_tokens: 30, output_tokens: 4_160 }, web_search: { num_requests: 2 } }
  const usage = { input_tokens: 100, output_tokens: 20, total_tokens: 120 }
  const response = { id: "resp_1", status: "completed", service_tier: "priority", usage, tool_usage, output: [] }
  t.match(meter(responses, stream({ type: "response.completed", response })), {
    usage: { input: 130, output: 20, image_output: 4_160, web_search: 2 },
    serviceTier: "priority",
    id: "resp_1",
  })
})

t.test("searches are those that the vendor counts, else those among the items", async t => {
  const search = { type: "web_search_call", action: { type: "search" } }
  const look = { type: "web_search_call", action: { type: "open_page" } }
  const answer = (more: object) => whole({ output: [search, look, search], usage: { input_tokens: 1 }, ...more })
  const searches = (more: object) => meter(responses, answer(more)).usage?.web_search ?? 0
  t.equal(searches({}), 2)
  t.equal(searches({ tool_usage: { web_search: { num_requests: 5 } } }), 5)
  t.equal(searches({ tool_usage: { web_search: { num_requests: 0 } } }), 0)
  const details = { server_side_tool_usage_details: { web_search_calls: 3, x_search_calls: 1 } }
  t.equal(searches({ usage: { input_tokens: 1, ...details } }), 4)
})

t.test("the id of a stored response is known with the first event", async t => {
  const reader = responses.usage()
  const created = { type: "response.created", response: { id: "resp_9", usage: null } }
  reader.event({ type: "response.created", data: Buffer.from(JSON.stringify(created)) })
  t.same(reader.report(), { outputBytes: 0, id: "resp_9" })
})

t.test("vectors without counts show that something was delivered; a total alone is input", async t => {
  t.same(meter(embeddings, whole({ data: [{ embedding: [0.1] }] })), { outputBytes: 1, wordless: true, surprises: [] })
  t.same(meter(embeddings, whole({ data: [{}], usage: { total_tokens: 9 } })).usage, { input: 9 })
  t.same(meter(moderations, whole({ results: [{ flagged: false }] })).usage, { requests: 1 })
})
