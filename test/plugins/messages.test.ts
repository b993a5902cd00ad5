/** Models of other families on the messages route. */
import fc from "fast-check"
import t from "tap"
import type { ChatAnswer } from "../../core/index.ts"
import { MessageEvents, wholeMessage } from "../../plugins/messages/hub/index.ts"
import { candidate } from "../fixtures/google-chat.ts"
import { chatAnswer, events, json, openProduct } from "../fixtures/product.ts"

const head = { id: "msg_1", model: "gpt", estimatedInput: 5, stops: [] }
const call = (index: number, name: string | undefined, text: string, id?: string) => ({
  index,
  id,
  function: { name, arguments: text },
})
const delta = (part: object, finish_reason: string | null = null): ChatAnswer => ({
  choices: [{ delta: part, finish_reason }],
})

/** What a client of the family puts together. */
const assembled = (text: string) => {
  const all = [...text.matchAll(/^event: (.*)\ndata: (.*)\n$/gm)].map(([, type, data]) => ({
    ...JSON.parse(data!),
    event: type,
  }))
  const blocks: { type: string; text: string }[] = []
  let open: number | undefined
  for (const one of all) {
    if (one.event !== one.type) throw new Error("the two names differ")
    if (one.type === "content_block_start") {
      if (open !== undefined || one.index !== blocks.length) throw new Error("blocks overlap or skip")
      open = one.index
      blocks.push({ type: one.content_block.type, text: one.content_block.name ?? "" })
    } else if (one.type === "content_block_stop") open = undefined
    else if (one.type === "content_block_delta") {
      if (one.index !== open) throw new Error("a delta of a closed block")
      blocks.at(-1)!.text += one.delta.text ?? one.delta.thinking ?? one.delta.partial_json
    }
  }
  if (open !== undefined) throw new Error("a block stays open")
  return { blocks, first: all[0], end: all.at(-2), last: all.at(-1)?.type }
}

const run = (...chunks: ChatAnswer[]) => {
  const stream = new MessageEvents(head)
  return assembled(chunks.map(one => stream.push(one)).join("") + stream.end())
}

t.test("a stream as the family writes it", async t => {
  await t.test("thoughts, text and usage", async t => {
    const usage = { prompt_tokens: 10, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 4 } }
    const { blocks, first, end, last } = run(
      delta({ role: "assistant", content: "" }),
      delta({ reasoning_content: "hm" }),
      delta({ content: "Hel" }),
      delta({ content: "lo", tool_calls: [] }, "stop"),
      { choices: [], usage },
    )
    t.same(blocks, [
      { type: "thinking", text: "hm" },
      { type: "text", text: "Hello" },
    ])
    t.match(first, { type: "message_start", message: { id: "msg_1", model: "gpt", usage: { input_tokens: 5 } } })
    t.match(end, {
      delta: { stop_reason: "end_turn" },
      usage: { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 20 },
    })
    t.equal(last, "message_stop")
  })

  await t.test("interleaved calls come out whole, and end the turn whatever the vendor says", async t => {
    const { blocks, end } = run(
      delta({ content: "a" }),
      delta({ tool_calls: [call(0, "f", "", "t1")] }),
      delta({ tool_calls: [call(0, undefined, '{"a"'), call(1, "g", '{"b"', "t2")] }),
      delta({ tool_calls: [call(0, undefined, ":1}"), call(1, undefined, ":2}"), call(2, "h", "", "t3")] }, "stop"),
    )
    t.same(blocks, [
      { type: "text", text: "a" },
      { type: "tool_use", text: 'f{"a":1}' },
      { type: "tool_use", text: 'g{"b":2}' },
      { type: "tool_use", text: "h" },
    ])
    t.equal(end.delta.stop_reason, "tool_use")
  })

  await t.test("any mix of deltas makes blocks that do not overlap and lose nothing", async t => {
    const piece = fc.oneof(
      fc.record({ content: fc.string({ minLength: 1 }) }),
      fc.record({ reasoning_content: fc.string({ minLength: 1 }) }),
      fc
        .tuple(fc.nat(2), fc.constantFrom("{", "1"))
        .map(([index, text]) => ({ tool_calls: [call(index, `f${index}`, text, `t${index}`)] })),
    )
    fc.assert(
      fc.property(fc.array(piece), pieces => {
        const { blocks } = run(...pieces.map(one => delta(one)), delta({}, "stop"))
        const got = (type: string) => blocks.filter(one => one.type === type).map(one => one.text)
        const sent = (field: string) => pieces.map(one => (one as Record<string, unknown>)[field] ?? "").join("")
        const calls = pieces.flatMap(one => ("tool_calls" in one ? one.tool_calls : []))
        const whole = [0, 1, 2]
          .map(index => calls.filter(each => each.index === index))
          .filter(own => own.length > 0)
          .map(own => own[0]!.function.name + own.map(each => each.function.arguments).join(""))
        t.equal(got("text").join(""), sent("content"))
        t.equal(got("thinking").join(""), sent("reasoning_content"))
        t.same(got("tool_use").sort(), whole.sort())
      }),
    )
  })

  await t.test("one that was cut never ends well", async t => {
    const stream = new MessageEvents(head)
    stream.push(delta({ content: "a" }))
    t.throws(() => stream.end(), { code: "upstream_unavailable" })
  })
})

t.test("a whole answer as the family writes it", async t => {
  const answer = (message: object, finish_reason = "stop") =>
    wholeMessage({ choices: [{ message, finish_reason }] }, head)
  t.match(answer({ content: "a" }, "length"), { content: [{ type: "text", text: "a" }], stop_reason: "max_tokens" })
  t.match(answer({ content: null, tool_calls: [{ id: "t", function: { name: "f", arguments: '{"a":1}' } }] }), {
    content: [{ type: "tool_use", id: "t", name: "f", input: { a: 1 } }],
    stop_reason: "tool_use",
  })
  t.match(answer({ tool_calls: [{ id: "t", function: { name: "f", arguments: "{" } }] }), {
    content: [{ input: { _raw: "{" } }],
  })
  t.same(answer({ content: "" }).content, [])
  t.throws(() => wholeMessage({ choices: [] }, head), { code: "upstream_unreadable" })
})

const weather = { name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }

const thinker = (vendor: string) => ({
  type: "llm",
  family: vendor,
  targets: [{ vendor, model: "vendor-model" }],
  max_output: 1000,
  capabilities: ["tools", "reasoning"],
  messages: true,
  price: { input: "1000 per 1M tokens", output: "2000 per 1M tokens" },
})

t.test("on real sockets", async t => {
  const request = { model: "gpt-shared", max_tokens: 10, messages: [{ role: "user", content: "hi" }] }
  const path = "/anthropic/v1/messages"

  await t.test("a whole answer is translated, metered at the vendor's side, and charged", async t => {
    const product = await openProduct(t)
    product.vendor.answer = (_, response) => json(response, 200, chatAnswer)
    const answer = await product.call(path, request)
    t.match(await answer.json(), {
      type: "message",
      model: "gpt-shared",
      content: [{ type: "text", text: "Hello" }],
      usage: { input_tokens: 10, output_tokens: 20 },
    })
    t.equal(answer.headers.get("x-credits-charged"), "0.05")
    t.match(product.vendor.received[0], { path: "/v1/chat/completions" })
  })

  await t.test("a stream is translated, and a cut one ends with the family's error event", async t => {
    const product = await openProduct(t)
    const chunk = (part: object) => JSON.stringify({ id: "c", ...part })
    const text = chunk(delta({ content: "Hi" }))
    product.vendor.answer = (_, response) =>
      events(response, text, chunk(delta({}, "stop")), chunk({ choices: [], usage: chatAnswer.usage }), "[DONE]")
    const { blocks, last } = assembled(await (await product.call(path, { ...request, stream: true })).text())
    t.same(blocks, [{ type: "text", text: "Hi" }])
    t.equal(last, "message_stop")
    t.match(await product.balance(), { spent: 50_000, held: 0 })
    product.vendor.answer = (_, response) => events(response, text)
    const cut = await (await product.call(path, { ...request, stream: true })).text()
    t.match(cut, /event: error\ndata: \{"type":"error"/)
    t.notMatch(cut, "message_stop")
  })

  await t.test("numbers of a tool's arguments arrive as they were written", async t => {
    const product = await openProduct(t)
    const use = '{"type":"tool_use","id":"a","name":"look","input":{"id":1234567890123456789}}'
    const result = '{"type":"tool_result","tool_use_id":"a","content":"ok"}'
    const turns = `{"role":"assistant","content":[${use}]},{"role":"user","content":[${result}]}`
    await (await product.call(path, `{"model":"gpt-shared","max_tokens":10,"messages":[${turns}]}`)).text()
    t.match(product.vendor.received[0]?.json(), {
      messages: [{ tool_calls: [{ function: { arguments: '{"id":1234567890123456789}' } }] }, {}],
    })
  })

  await t.test("more stop sequences than chat takes: the vendor gets four, the others end the answer here", async t => {
    const product = await openProduct(t)
    const said = {
      ...chatAnswer,
      choices: [{ index: 0, message: { content: "One. END Two." }, finish_reason: "stop" }],
    }
    product.vendor.answer = (_, response) => json(response, 200, said)
    const answer = await product.call(path, { ...request, stop_sequences: ["1", "2", "3", "4", "END"] })
    t.match(await answer.json(), {
      content: [{ type: "text", text: "One. " }],
      stop_reason: "stop_sequence",
      stop_sequence: "END",
    })
    t.same(product.vendor.received[0]?.json().stop, ["1", "2", "3", "4"])
    t.match(await product.balance(), { spent: 50_000, held: 0 }, "what the vendor made is paid")
  })

  await t.test("a model that takes no stop sequences answers to its end, and is cut here", async t => {
    const unstoppable = { ...thinker("openai"), rules: { refuse: ["stop"] } }
    const product = await openProduct(t, { catalog: { models: { unstoppable } } })
    const said = {
      ...chatAnswer,
      choices: [{ index: 0, message: { content: "One. END Two." }, finish_reason: "stop" }],
    }
    product.vendor.answer = (_, response) => json(response, 200, said)
    const ask = { ...request, model: "unstoppable", stop_sequences: ["END"] }
    t.match(await (await product.call(path, ask)).json(), {
      content: [{ type: "text", text: "One. " }],
      stop_reason: "stop_sequence",
    })
    t.notOk("stop" in product.vendor.received[0]!.json())
    const chat = await product.call("/chat/completions/", { ...request, model: "unstoppable", stop: "END" })
    t.equal(chat.status, 400)
    t.match(await chat.json(), { error: { param: "stop" } })
  })

  await t.test("effort that a model refuses beside tools is left out, once, before any byte", async t => {
    const product = await openProduct(t, { catalog: { models: { thinker: thinker("openai") } } })
    product.vendor.answer = ({ json: read }, response) =>
      read().reasoning_effort === undefined
        ? json(response, 200, chatAnswer)
        : json(response, 400, { error: { message: "Function tools with reasoning_effort are not supported" } })
    const thinking = { type: "enabled", budget_tokens: 10_000 }
    const answer = await product.call(path, { ...request, model: "thinker", thinking, tools: [weather] })
    t.equal(answer.status, 200)
    t.same(
      product.vendor.received.map(one => one.json().reasoning_effort),
      ["medium", undefined],
    )
    await answer.body?.cancel()
  })

  for (const stream of [false, true]) {
    await t.test(`an answer of nothing ends a turn, and is no refusal ${stream}`, async t => {
      const product = await openProduct(t, { catalog: { models: { thinker: thinker("google") } } })
      const usageMetadata = { promptTokenCount: 10, totalTokenCount: 10 }
      const told = candidate([], "STOP", { usageMetadata })
      product.vendor.answer = (_, response) =>
        stream ? events(response, JSON.stringify(told)) : json(response, 200, told)
      const answer = await (await product.call(path, { ...request, model: "thinker", stream })).text()
      t.match(answer, '"stop_reason":"end_turn"')
      t.match(answer, "The model ended without an answer.")
    })
  }

  // The second id is no id of this wire's neighbours: it is shortened on its way to them.
  for (const id of ["call-1", `call.1/${"x".repeat(60)}`]) {
    for (const stream of [false, true]) {
      await t.test(`a thought signature comes back with its call ${id.length} ${stream}`, async t => {
        const product = await openProduct(t, { catalog: { models: { thinker: thinker("google") } } })
        const parts = [{ functionCall: { name: "weather", args: {}, id }, thoughtSignature: "ab+/cd==" }]
        const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
        const told = candidate(parts, "STOP", { usageMetadata })
        product.vendor.answer = (_, response) =>
          stream ? events(response, JSON.stringify(told)) : json(response, 200, told)
        const ask = { ...request, model: "thinker", stream, tools: [weather] }
        const first = await (await product.call(path, ask)).text()
        const block = { type: "tool_use", id, name: "weather", input: {} }
        t.match(first, JSON.stringify(id))
        const turns = [
          ...request.messages,
          { role: "assistant", content: [block] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "rain" }] },
        ]
        await (await product.call(path, { ...ask, messages: turns })).text()
        t.match(product.vendor.received[1]?.json(), {
          contents: [{}, { parts: [{ functionCall: { name: "weather" }, thoughtSignature: "ab+/cd==" }] }, {}],
        })
      })
    }
  }
})
