import fc from "fast-check"
import t from "tap"
import { compileSchema, validateOptions } from "../../core/catalog/schema.ts"
import { keptBytes } from "../fixtures/kept.ts"

const schema = {
  type: "object",
  required: ["model", "messages"],
  additionalProperties: false,
  properties: {
    model: { type: "string", minLength: 1, maxLength: 5, pattern: "^[a-z]*$" },
    stream: { type: "boolean" },
    temperature: { type: "number", minimum: 0, maximum: 2 },
    top_k: { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 10 },
    even: { type: "integer", multipleOf: 2 },
    stop: { type: ["string", "array"] },
    n: { type: ["integer", "null"] },
    tools: { type: ["string", "array", "null"] },
    nothing: { type: "null" },
    when: { type: "string", format: "date" },
    messages: {
      type: "array",
      minItems: 1,
      maxItems: 2,
      items: { type: "object", required: ["role"], properties: { role: { enum: ["user", "assistant"] } } },
    },
    extra: { type: "object", maxProperties: 1, additionalProperties: { const: 1 } },
  },
}
const fine = { model: "a", messages: [{ role: "user" }] }

t.test("a value that fits has no problems", async t => {
  t.same(compileSchema(schema)(fine), [])
})

t.test("each mistake has its place, its type and its words", async t => {
  const check = compileSchema(schema)
  const cases: readonly (readonly [value: unknown, loc: readonly (string | number)[], type: string, msg?: string])[] = [
    [{ messages: fine.messages }, ["body", "model"], "missing", "Field required"],
    [{ ...fine, messages: [{}] }, ["body", "messages", 0, "role"], "missing"],
    [{ ...fine, model: 1 }, ["body", "model"], "string_type", "Input should be a valid string"],
    [{ ...fine, model: "" }, ["body", "model"], "string_too_short"],
    [{ ...fine, model: "abcdef" }, ["body", "model"], "string_too_long"],
    [{ ...fine, model: "A" }, ["body", "model"], "string_pattern_mismatch"],
    [{ ...fine, stream: "yes" }, ["body", "stream"], "bool_type"],
    [{ ...fine, temperature: "hot" }, ["body", "temperature"], "float_type"],
    [
      { ...fine, temperature: 3 },
      ["body", "temperature"],
      "less_than_equal",
      "Input should be less than or equal to 2",
    ],
    [{ ...fine, temperature: -1 }, ["body", "temperature"], "greater_than_equal"],
    [{ ...fine, temperature: JSON.parse("1e400") }, ["body", "temperature"], "float_type"],
    [{ ...fine, top_k: 1.5 }, ["body", "top_k"], "int_type"],
    [{ ...fine, top_k: JSON.parse("1e400") }, ["body", "top_k"], "int_type"],
    [{ ...fine, top_k: 0 }, ["body", "top_k"], "greater_than"],
    [{ ...fine, top_k: 10 }, ["body", "top_k"], "less_than"],
    [{ ...fine, even: 3 }, ["body", "even"], "multiple_of"],
    [{ ...fine, stop: 1 }, ["body", "stop"], "union_type"],
    [{ ...fine, n: "1" }, ["body", "n"], "int_type", "Input should be a valid integer"],
    [{ ...fine, tools: 1 }, ["body", "tools"], "union_type", "Input should be one of: string, array"],
    [{ ...fine, nothing: 1 }, ["body", "nothing"], "none_required"],
    [{ ...fine, when: "soon" }, ["body", "when"], "value_error"],
    [{ ...fine, messages: "hi" }, ["body", "messages"], "list_type"],
    [{ ...fine, messages: [] }, ["body", "messages"], "too_short", "Input should have at least 1 item"],
    [{ ...fine, messages: [fine.messages[0], fine.messages[0], fine.messages[0]] }, ["body", "messages"], "too_long"],
    [
      { ...fine, messages: [{ role: "boss" }] },
      ["body", "messages", 0, "role"],
      "literal_error",
      "Input should be one of 'user', 'assistant'",
    ],
    [{ ...fine, extra: { a: 2 } }, ["body", "extra", "a"], "literal_error", "Input should be 1"],
    [{ ...fine, extra: { a: 1, b: 1 } }, ["body", "extra"], "too_long"],
    [{ ...fine, "a/b~c": 1 }, ["body", "a/b~c"], "extra_forbidden"],
    [[], ["body"], "dict_type", "Input should be a valid object"],
    [null, ["body"], "dict_type"],
  ]
  for (const [value, loc, type, msg] of cases) {
    const problems = check(value)
    t.match(problems, [{ loc, type, ...(msg === undefined ? {} : { msg }) }], JSON.stringify(value))
    t.equal(problems.length, 1, JSON.stringify(problems))
  }
})

t.test("all mistakes are told at once", async t => {
  t.same(
    compileSchema(schema)({ model: 1, top: 2 })
      .map(problem => problem.type)
      .sort(),
    ["extra_forbidden", "missing", "string_type"],
  )
})

t.test("of several shapes that do not fit, each says why", async t => {
  const check = compileSchema({ anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] })
  t.same(
    check(5).map(problem => problem.type),
    ["string_type", "list_type"],
  )
  t.match(compileSchema({ oneOf: [{ type: "string" }, { minLength: 1 }] })("a"), [
    { loc: ["body"], type: "value_error" },
  ])
})

t.test("a body with nothing but mistakes gets a short answer", async t => {
  const problems = compileSchema(schema)({ ...fine, messages: Array(100_000).fill(1) })
  t.equal(problems.length, 50)
})

t.test("the query has its own first step, and the bounds stand in `ctx`", async t => {
  const check = compileSchema({ type: "object", properties: { by: { enum: ["model", "day"] } } }, "query")
  t.same(check({ by: "moon" }), [
    {
      loc: ["query", "by"],
      msg: "Input should be one of 'model', 'day'",
      type: "literal_error",
      input: "moon",
      ctx: { expected: "'model', 'day'" },
    },
  ])
  t.match(compileSchema(schema)({ ...fine, temperature: 3 }), [{ ctx: { le: 2 }, input: 3 }])
})

t.test("a long or deep value is not echoed whole", async t => {
  const [problem] = compileSchema(schema)({ ...fine, stream: "x".repeat(100_000) })
  t.ok(JSON.stringify(problem).length < 500)
  t.match(compileSchema(schema)({ ...fine, stream: Array(50_000).fill(1) }), [{ input: "a list of 50000" }])
})

t.test("the checker of one schema serves both places", async t => {
  const value = { ...fine, stream: 1 }
  t.match(compileSchema(schema, "query")(value), [{ loc: ["query", "stream"] }])
  t.match(compileSchema(schema, "body")(value), [{ loc: ["body", "stream"] }])
})

t.test("checking never changes the value, and never throws", async () => {
  const check = compileSchema({
    ...schema,
    properties: { ...schema.properties, stream: { type: "boolean", default: true } },
  })
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      const before = JSON.stringify(value)
      check(value)
      return JSON.stringify(value) === before
    }),
    { numRuns: 200 },
  )
})

t.test("options get their defaults, and the ones given stay untouched", async t => {
  const options = {
    type: "object",
    additionalProperties: false,
    properties: {
      max: { type: "integer", default: 5 },
      window: { type: "object", default: {}, properties: { requests: { type: "integer", default: 120 } } },
    },
  }
  const given = { max: 7 }
  t.same(validateOptions(options, given), { value: { max: 7, window: { requests: 120 } }, problems: [] })
  t.same(given, { max: 7 })
  t.match(validateOptions(options, { max: "7", maxx: 1 }).problems, [
    { loc: ["maxx"], type: "extra_forbidden" },
    { loc: ["max"], type: "int_type" },
  ])
})

t.test("who wrote an option wrong is told what would be right: the keys, or values that would do", async t => {
  const of = (schema: Readonly<Record<string, unknown>>, value: unknown) =>
    validateOptions(schema, value).problems.map(({ msg }) => msg)
  const properties = { window: { type: "string", pattern: "^\\d+s$", examples: ["5s", "60s"] } }
  const options = { type: "object", additionalProperties: false, properties }
  t.same(of(options, { wnidow: "5s" }), ["Extra inputs are not permitted, expected one of: window"])
  t.same(of(options, { window: 5 }), ["Input should be a valid string, such as 5s, 60s"])
  t.match(of(options, { window: "5" }), [/^String should match pattern '.*', such as 5s, 60s$/])
  t.same(of(options, true), ["Input should be a valid object of window"])
  t.same(of({ type: "object", additionalProperties: false }, { x: 1 }), [
    "Extra inputs are not permitted, none is known",
  ])
  t.same(of({ properties: { x: false } }, { x: 1 }), ["boolean schema is false"])
  t.same(compileSchema(options)({ window: 5 })[0]?.msg, "Input should be a valid string", "clients read as before")
})

t.test("two plugins may use one $id, and a broken schema is an error", async t => {
  const named = { $id: "https://example.com/options", type: "object", properties: { a: { default: 1 } } }
  t.same(validateOptions(named, {}).value, { a: 1 })
  t.same(validateOptions({ ...named }, {}).value, { a: 1 })
  t.same(compileSchema(named)({}), [])
  t.same(compileSchema({ ...named })({}), [])
  t.throws(() => compileSchema({ type: "nonsense" }))
})

t.test("schemas that come again with every reload leave nothing behind", async t => {
  const reload = (): void => {
    t.same(compileSchema(structuredClone(schema))(fine), [])
    t.same(validateOptions(structuredClone(schema), fine).problems, [])
  }
  const kept = (times: number): number => {
    for (let time = 0; time < times; time += 1) reload()
    return keptBytes()
  }
  const before = kept(50)
  const growth = kept(500) - before
  t.ok(growth < 3_000_000, `${growth} bytes after 500 reloads`)
})
