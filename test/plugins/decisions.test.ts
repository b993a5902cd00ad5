/** Decisions: both forms, answered by a model's log probabilities, by its own words, or by a vendor that decides itself. */
import { createHash } from "node:crypto"
import fc from "fast-check"
import OpenAI from "openai"
import t, { type Test } from "tap"
import { distributionsOf } from "../../plugins/decisions/distribution.ts"
import { questionsOf } from "../../plugins/decisions/questions.ts"
import { modelOf, openEndpoints, openSandboxed, told } from "../fixtures/endpoints.ts"
import { chatAnswer, json } from "../fixtures/product.ts"

const price = { input: "1000 per 1M tokens", output: "2000 per 1M tokens" }
const models = {
  gpt: modelOf("llm", "openai", { price }),
  thinker: modelOf("llm", "openai", { price, capabilities: ["reasoning"] }),
  judge: modelOf("decision", "openai", { price }),
  claude: modelOf("decision", "anthropic", { price }),
  vectors: modelOf("embedding", "openai"),
}
const open = (t: Test) => openEndpoints(t, models)

const questions = {
  team: { type: "choice", instructions: "Which team?", criteria: { billing: "Payments", support: null } },
  urgency: { type: "score", instructions: { how: "urgent" }, criteria: ["low", "mid", "high"] },
  refund: { type: "noul", instructions: "Is a refund asked for?", criteria: { true: "Asked", false: "Not asked" } },
}
const request = { model: "gpt", state: { text: "Give me my money back" }, questions }
const list = {
  model: "gpt",
  input: "Give me my money back",
  questions: [
    {
      type: "choice" as const,
      name: "team",
      instructions: "Which?",
      choices: [{ value: "billing" }, { value: true, description: "d" }],
    },
    { type: "score" as const, instructions: "How urgent?", levels: [{ label: "low" }, { label: "high" }] },
    { type: "predicate" as const, name: "refund", instructions: "A refund?" },
  ],
}

type Alternatives = Readonly<Record<string, number>>
const token = (text: string, alternatives: Alternatives = {}) => ({
  token: text,
  logprob: Math.log(alternatives[text] ?? 1),
  top_logprobs: Object.entries(alternatives).map(([one, chance]) => ({ token: one, logprob: Math.log(chance) })),
})
const thought = (...numbers: readonly Alternatives[]) => {
  const content = numbers.flatMap((alternatives, index) => [
    token(index === 0 ? '{"' : ',"'),
    token(`q${index}`),
    token('":'),
    token(Object.keys(alternatives)[0] as string, alternatives),
  ])
  const tokens = [...content, token("}")]
  return answerOf(tokens.map(one => one.token).join(""), { logprobs: { content: tokens } })
}
const answerOf = (content: unknown, more: object = {}) => ({
  ...chatAnswer,
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop", ...more }],
})
const stated = (...answers: readonly (readonly number[])[]) =>
  answerOf(JSON.stringify(Object.fromEntries(answers.map((answer, index) => [`q${index}`, { ...answer }]))))

t.test("the map form is answered by the log probabilities of one token for each question", async t => {
  const endpoints = await open(t)
  const chat = thought(
    { "1": 0.6, "0": 0.2, x: 0.1, "7": 0.1 },
    { "2": 0.5, "1": 0.25, "0": 0.25 },
    { "0": 0.75, "1": 0.25 },
  )
  endpoints.vendor.answer = (_, response) => json(response, 200, chat)
  t.same(await told(await endpoints.call("/decisions/", request)), {
    status: 200,
    wait: null,
    charged: "0.05",
    model: "gpt",
    answers: {
      team: { type: "choice", choice: "support", probabilities: { billing: 0.25, support: 0.75 }, confidence: 0.75 },
      urgency: {
        type: "score",
        score: 1.25,
        legend: { 0: "low", 1: "mid", 2: "high" },
        probabilities: { 0: 0.25, 1: 0.25, 2: 0.5 },
        confidence: 0.5,
      },
      refund: { type: "noul", noul: 0.25 },
    },
    usage: { input_tokens: 10, output_tokens: 20 },
  })
  const { path, json: body } = endpoints.vendor.received[0]!
  t.equal(path, "/v1/chat/completions")
  const numbers = (...enumerated: readonly number[]) => ({ type: "integer", enum: enumerated })
  t.match(body(), {
    model: "vendor-model",
    logprobs: true,
    top_logprobs: 20,
    messages: [
      { role: "system", content: /q0: Which team\?\n0: billing \(Payments\)\n1: support\n\nq1: \{"how":"urgent"\}/ },
      { role: "user", content: '{"text":"Give me my money back"}' },
    ],
    response_format: {
      json_schema: {
        strict: true,
        schema: {
          properties: { q0: numbers(0, 1), q1: numbers(0, 1, 2), q2: numbers(0, 1) },
          additionalProperties: false,
        },
      },
    },
  })
  t.equal(await endpoints.spent(), 50_000)
})

t.test("the list form is answered in order, as the official client reads it", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (_, response) =>
    json(response, 200, thought({ "1": 1 }, { "0": 0.5, "1": 0.5 }, { "1": 0.75, "0": 0.25 }))
  const client = new OpenAI({ apiKey: endpoints.key, baseURL: endpoints.url, maxRetries: 0 })
  const answer = await client.decisions.create(list)
  t.same(answer.answers, [
    {
      name: "team",
      type: "choice",
      choice: true,
      probabilities: [
        { value: "billing", probability: 0 },
        { value: true, probability: 1 },
      ],
      confidence: 1,
    },
    {
      name: null,
      type: "score",
      score: 0.5,
      probabilities: [
        { label: "low", value: 0, probability: 0.5 },
        { label: "high", value: 1, probability: 0.5 },
      ],
      confidence: 0.5,
    },
    { name: "refund", type: "predicate", probability: 0.75 },
  ])
  t.match(answer.usage, {
    input_tokens: 10,
    output_tokens: 20,
    total_tokens: 30,
    input_tokens_details: { cached_tokens: 0 },
  })
})

t.test("a model that hides its log probabilities states them, and sums are made whole", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (_, response) => json(response, 200, stated([0.2, 0.6], [0, 0, 0], [0, 1]))
  const answer = await told(await endpoints.call("/decisions/", { ...request, model: "thinker" }))
  t.match(answer, {
    answers: {
      team: { choice: "support", probabilities: { billing: 0.25, support: 0.75 } },
      urgency: { score: 1, confidence: 0.333333 },
      refund: { noul: 1 },
    },
  })
  const body = endpoints.vendor.received[0]?.json()
  t.notOk(body !== undefined && "logprobs" in body)
})

t.test("a host that refuses log probabilities is asked again without them, and only the answer is charged", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (received, response) =>
    "logprobs" in received.json()
      ? json(response, 400, {
          error: { message: "`logprobs` is not supported with this model", type: "invalid_request_error" },
        })
      : json(response, 200, stated([1, 0], [1, 0, 0], [1, 0]))
  t.match(await told(await endpoints.call("/decisions/", request)), { status: 200, answers: { refund: { noul: 0 } } })
  t.equal(endpoints.vendor.received.length, 2)
  t.equal(await endpoints.spent(), 50_000)
})

t.test("log probabilities that cannot be found leave the answer itself", async t => {
  const asked = questionsOf(questions)
  const content = '{"q0":1,"q1":2,"q2":0}'
  for (const more of [
    {},
    { logprobs: null },
    { logprobs: { content: [token(content)] } },
    { logprobs: { content: [7, {}] } },
  ]) {
    t.same(distributionsOf(answerOf(content, more), asked, "logprobs"), [
      [0, 1],
      [0, 0, 1],
      [1, 0],
    ])
  }
})

t.test("whatever a model thinks, each distribution sums to 1 and has a number for each option", async t => {
  const asked = questionsOf(questions)
  const chances = fc.dictionary(
    fc.constantFrom("0", "1", "2", " 1", "12", "x"),
    fc.double({ min: 0, max: 1, noNaN: true }),
    { minKeys: 1 },
  )
  fc.assert(
    fc.property(fc.array(chances, { minLength: 3, maxLength: 3 }), ([a, b, c]) => {
      const chat = thought({ "0": 0.5, ...a }, { "0": 0.5, ...b }, { "0": 0.5, ...c })
      const distributions = distributionsOf(chat, asked, "logprobs") ?? []
      t.same(
        distributions.map(one => one.length),
        [2, 3, 2],
      )
      for (const one of distributions) {
        t.ok(
          Math.abs(one.reduce((sum, value) => sum + value, 0) - 1) < 1e-9 &&
            one.every(value => value >= 0 && value <= 1),
        )
      }
    }),
    { numRuns: 50 },
  )
})

t.test("a refusal is an answer, and is charged; an answer that does not fit is neither", async t => {
  const endpoints = await open(t)
  const refused = answerOf(null, { message: { role: "assistant", content: null, refusal: "I will not" } })
  endpoints.vendor.answer = (_, response) => json(response, 200, refused)
  t.match(await told(await endpoints.call("/decisions/", request)), {
    charged: "0.05",
    answers: { team: { type: "refusal" } },
  })
  t.match(await told(await endpoints.call("/decisions/", list)), {
    answers: [{ name: "team", type: "refusal" }, { name: null }, {}],
  })
  const spent = await endpoints.spent()
  const odd = [
    "",
    "no json",
    "[]",
    "{}",
    '{"q0":9,"q1":0,"q2":0}',
    '{"q0":"0","q1":0,"q2":0}',
    '{"q0":0.5,"q1":0,"q2":0}',
  ]
  for (const content of odd) {
    endpoints.vendor.answer = (_, response) => json(response, 200, answerOf(content))
    t.match(await told(await endpoints.call("/decisions/", request)), { status: 502, charged: null }, content)
  }
  endpoints.vendor.answer = (_, response) => json(response, 200, stated([1.5, 0], [1, 0, 0], [1, 0]))
  t.equal((await endpoints.call("/decisions/", { ...request, model: "thinker" })).status, 502)
  t.equal(await endpoints.spent(), spent)
})

t.test("a vendor that decides itself gets and gives the bytes as they are", async t => {
  const endpoints = await open(t)
  const digest = (text: string): string => createHash("sha256").update(text).digest("hex")
  const back =
    '{"model":"theirs",  "answers":{"a":{"type":"noul","noul":0.86460}},"usage":{"input_tokens":45,"output_tokens":0}}'
  endpoints.vendor.answer = (_, response) => response.writeHead(200, { "content-type": "application/json" }).end(back)
  const sent = (name: string) =>
    `{ "model":"${name}", "state" : "s", "questions":{"a":{"type":"noul","instructions":"?"}} }`
  const response = await endpoints.call("/decisions/", sent("judge"))
  t.equal(response.headers.get("x-credits-charged"), "0.045")
  t.equal(digest(await response.text()), digest(back))
  const listed = { model: "judge", input: "s", questions: [{ type: "predicate", instructions: "?" }] }
  await endpoints.call("/decisions/", listed)
  t.same(
    endpoints.vendor.received.map(one => one.path),
    ["/v1/systemone", "/v1/decisions"],
  )
  t.equal(digest(endpoints.vendor.received[0]?.text ?? ""), digest(sent("vendor-model")))
  t.equal(await endpoints.spent(), 2 * 45_000)
})

t.test("an answer without usage is charged by the estimate, and told as it came", async t => {
  const endpoints = await openEndpoints(t, { judge: modelOf("decision", "openai") })
  const answers = { a: { type: "noul", noul: 0.5 } }
  const question = { model: "judge", state: "x", questions: { a: { type: "noul", instructions: "y" } } }
  const estimated = Math.ceil("judgexnouly".length / 3)
  for (const usage of [undefined, null, {}, { input_tokens: 0, output_tokens: 0 }, "none"]) {
    endpoints.vendor.answer = (_, response) => json(response, 200, { answers, usage })
    const { status, charged } = await told(await endpoints.call("/decisions/", question))
    t.same({ status, charged }, { status: 200, charged: String(estimated / 1000) }, JSON.stringify(usage))
  }
})

t.test("questions that cannot be asked are refused with their place, before any vendor is called", async t => {
  const endpoints = await open(t)
  const ask = async (body: object) => told(await endpoints.call("/decisions/", body))
  const one = (question: unknown) => ({ ...request, questions: { a: question } })
  const at = (...loc: readonly (string | number)[]) => ({ status: 422, detail: [{ loc: ["body", ...loc] }] })
  const cases: readonly (readonly [object, object])[] = [
    [{ ...request, state: undefined }, at("state")],
    [{ ...request, state: 7 }, at("state")],
    [{ ...request, questions: undefined }, at("questions")],
    [{ ...request, questions: {} }, at("questions")],
    [{ ...list, questions: [] }, at("questions")],
    [
      { ...request, questions: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, questions.refund])) },
      at("questions"),
    ],
    [one("?"), at("questions", "a")],
    [one({ instructions: "?" }), at("questions", "a", "type")],
    [one({ type: "constructor", instructions: "?" }), at("questions", "a", "type")],
    [one({ type: "noul" }), at("questions", "a", "instructions")],
    [one({ type: "noul", instructions: "" }), at("questions", "a", "instructions")],
    [one({ type: "choice", instructions: "?" }), at("questions", "a", "criteria")],
    [one({ type: "choice", instructions: "?", options: [] }), at("questions", "a", "options")],
    [one({ type: "choice", instructions: "?", options: ["a", "a"] }), at("questions", "a", "options")],
    [one({ type: "choice", instructions: "?", options: ["a", 1] }), at("questions", "a", "options")],
    [
      one({ type: "choice", instructions: "?", options: Array.from({ length: 101 }, (_, n) => `o${n}`) }),
      at("questions", "a", "options"),
    ],
    [one({ type: "score", instructions: "?", criteria: ["only"] }), at("questions", "a", "criteria")],
    [one({ type: "score", instructions: "?", criteria: { low: "x" } }), at("questions", "a", "criteria")],
    [{ ...list, questions: [{ type: "predicate", instructions: "?", name: 7 }] }, at("questions", 0, "name")],
  ]
  for (const [body, expected] of cases) t.match(await ask(body), expected, JSON.stringify(body).slice(0, 120))
  t.match(await ask({ ...request, questions: {} }), { detail: [{ type: "too_short" }] })
  t.match(await ask(one({ type: "choice", instructions: "?", options: [] })), { detail: [{ type: "too_short" }] })
  t.match(await ask({ ...request, model: "vectors" }), { status: 404, detail: "Model 'vectors' not found" })
  t.same(endpoints.vendor.received, [])
  t.equal(await endpoints.spent(), 0)
})

t.test("vendors' errors have their documented places and cost nothing", async t => {
  const endpoints = await open(t)
  const ask = async (status: number, error: object) => {
    endpoints.vendor.answer = (_, response) => json(response, status, { error })
    return told(await endpoints.call("/decisions/", request))
  }
  t.match(await ask(400, { message: "too long" }), { status: 400, detail: "too long" })
  t.match(await ask(429, { message: "slow", type: "requests" }), { status: 429, wait: "1" })
  t.match(await ask(503, { message: "busy" }), { status: 502 })
  t.equal(await endpoints.spent(), 0)
})

t.test("images of the list form reach the model as images", async t => {
  const endpoints = await open(t)
  endpoints.vendor.answer = (_, response) => json(response, 200, thought({ "1": 1 }, { "0": 1 }, { "1": 1 }))
  const url = "data:image/png;base64,AAAA"
  const content = [
    { type: "input_text", text: "Look" },
    { type: "input_image", image_url: url },
  ]
  await endpoints.call("/decisions/", { ...list, input: [{ role: "user", content }] })
  t.match(endpoints.vendor.received[0]?.json().messages, [
    { role: "system" },
    {
      role: "user",
      content: [
        { type: "text", text: "Look" },
        { type: "image_url", image_url: { url } },
      ],
    },
  ])
})

t.test("the sandbox's models decide in both forms, each in its own wire", async t => {
  const names = { openai: "gpt-4.1", anthropic: "claude-sonnet-4-5", google: "gemini-2.5-flash" }
  const at = ([vendor, model]: readonly string[]) => [
    vendor,
    { ...modelOf("llm", vendor as string, { price }), targets: [{ vendor, model }] },
  ]
  const origin = { secrets: [], origin: "https://vendor.invalid" }
  const gateway = await openSandboxed(
    t,
    Object.fromEntries(Object.entries(names).map(at)),
    Object.fromEntries(Object.keys(names).map(name => [name, origin])),
  )
  for (const model of Object.keys(names)) {
    const mapped = await told(await gateway.call("/decisions/", { ...request, model }))
    t.match(
      mapped,
      {
        status: 200,
        model,
        answers: { team: { type: "choice" }, urgency: { type: "score" }, refund: { type: "noul" } },
      },
      model,
    )
    t.match(
      await told(await gateway.call("/decisions/", { ...list, model })),
      { status: 200, answers: [{ name: "team" }, {}, {}] },
      model,
    )
  }
  t.ok((await gateway.balance()).spent > 0)
})
