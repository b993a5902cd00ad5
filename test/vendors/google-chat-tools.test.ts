/** Tools towards the generate-content wire, and schemas in the vendor's own dialect. */
import fc from "fast-check"
import t from "tap"
import { plainSchema } from "../../plugins/vendors/google/chat/schema.ts"
import { type Given, sent } from "../fixtures/google-chat.ts"

const refuses = (param: string) => ({ code: "invalid_request", param })
const f = {
  type: "function",
  function: { name: "f", description: "d", parameters: { type: "object", properties: {} } },
}
const g = { type: "function", function: { name: "g g", strict: true } }
const older: Given = { capabilities: ["tools"] }
const declarations = (tools: readonly object[], given?: Given) =>
  sent({ tools }, given).tools?.[0]?.functionDeclarations

t.test("functions are declared with their JSON Schema where the model takes it", async t => {
  const parameters = { $schema: "s", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { const: 1 } } }
  const tools = [f, g, { type: "function", function: { name: "h", parameters } }]
  const { $schema, ...plain } = parameters
  t.same(declarations(tools), [
    { name: "f", description: "d", parametersJsonSchema: { type: "object", properties: {} } },
    { name: "g_g" },
    { name: "h", parametersJsonSchema: { type: "object", ...plain } },
  ])
  t.same(declarations(tools, older), [
    { name: "f", description: "d" },
    { name: "g_g" },
    {
      name: "h",
      parameters: { type: "object", properties: { a: { type: "number", description: "One of: 1" } } },
    },
  ])
  t.equal(sent({ tools: [] }).tools, undefined)
})

t.test("the choice of tools gets its mode, and names in the vendor's spelling", async t => {
  const config = (tool_choice: unknown) => sent({ tools: [f, g], tool_choice }).toolConfig
  const calling = (functionCallingConfig: object) => ({ functionCallingConfig })
  const named = { type: "function", function: { name: "g g" } }
  t.equal(config("auto"), undefined)
  t.equal(config(null), undefined)
  t.same(config("none"), calling({ mode: "NONE" }))
  t.same(config("required"), calling({ mode: "ANY" }))
  t.same(config(named), calling({ mode: "ANY", allowedFunctionNames: ["g_g"] }))
  const allowed = (mode: string) => ({ type: "allowed_tools", allowed_tools: { mode, tools: [named] } })
  t.same(config(allowed("required")), calling({ mode: "ANY", allowedFunctionNames: ["g_g"] }))
  const auto = sent({ tools: [f, g], tool_choice: allowed("auto") })
  t.same([auto.toolConfig, auto.tools?.[0]?.functionDeclarations], [undefined, [{ name: "g_g" }]])
})

t.test("tools and choices that cannot be met are refused by their place", async t => {
  t.throws(() => sent({ tools: [f, { type: "custom", custom: { name: "c" } }] }), refuses("tools[1].type"))
  for (const odd of [{ type: "custom", function: { name: "c" } }, { type: "function" }]) {
    t.throws(() => sent({ tools: [odd] }), refuses("tools[0].type"))
  }
  t.throws(() => sent({ tools: [{ type: "function", function: {} }] }), refuses("tools[0].function.name"))
  const stranger = { type: "function", function: { name: "x" } }
  for (const tool_choice of ["required", stranger]) t.throws(() => sent({ tool_choice }), refuses("tool_choice"))
  for (const tool_choice of [stranger, "any", { type: "custom", custom: { name: "f" } }]) {
    t.throws(() => sent({ tools: [f], tool_choice }), refuses("tool_choice"))
  }
  t.doesNotThrow(() => sent({ tool_choice: "none" }))
})

// ---- bug 26: keywords that the vendor's dialect does not have ----

const plain = (schema: object) => plainSchema(schema as Record<string, unknown>, "tools")

t.test("bug 26: keywords without a counterpart are left out", async t => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "x",
    type: "object",
    additionalProperties: false,
    patternProperties: { "^a": {} },
    propertyNames: { pattern: "a" },
    unevaluatedProperties: false,
    properties: { a: { type: "string", format: "email", contentEncoding: "base64", examples: ["x"], minLength: 1 } },
    required: ["a", "b"],
    if: {},
    not: {},
  }
  t.same(plain(schema), { type: "object", properties: { a: { type: "string", minLength: 1 } }, required: ["a"] })
})

t.test("bug 26: const and enum are texts, or words in the description", async t => {
  t.same(plain({ const: "a" }), { type: "string", enum: ["a"] })
  t.same(plain({ const: 3, description: "n" }), { type: "number", description: "n (One of: 3)" })
  t.same(plain({ type: "integer", enum: [1, 2] }), { type: "integer", description: "One of: 1, 2" })
  t.same(plain({ enum: ["a", "b"] }), { type: "string", enum: ["a", "b"] })
  t.same(plain({ type: ["string", "null"], enum: ["a", null] }), { type: "string", enum: ["a"], nullable: true })
  t.same(plain({ type: "string", enum: ["a", ""] }), { type: "string", description: 'One of: "a", ""' })
})

t.test("bug 26: exclusive bounds become bounds", async t => {
  t.same(plain({ type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 9 }), {
    type: "integer",
    minimum: 0,
    maximum: 9,
  })
  t.same(plain({ type: "number", exclusiveMinimum: 0, minimum: 1 }), { type: "number", minimum: 1 })
  t.same(plain({ type: "number", exclusiveMinimum: true, minimum: 1 }), { type: "number", minimum: 1 })
})

t.test("bug 26: lists of types and unions become anyOf, null becomes nullable", async t => {
  t.same(plain({ type: ["string", "null"], description: "d" }), { type: "string", description: "d", nullable: true })
  t.same(plain({ type: ["string", "integer"] }), { anyOf: [{ type: "string" }, { type: "integer" }] })
  t.same(plain({ anyOf: [{ type: "string" }, { type: "null" }] }), { type: "string", nullable: true })
  t.same(plain({ oneOf: [{ type: "string" }, { type: "boolean" }, { const: null }] }), {
    anyOf: [{ type: "string" }, { type: "boolean" }],
    nullable: true,
  })
  t.same(plain({ type: "null" }), { type: "string", nullable: true })
  const object = { type: "object", properties: { a: {} }, anyOf: [{ required: ["a"] }, { properties: { b: {} } }] }
  const text = { type: "string" }
  t.same(plain(object), {
    anyOf: [
      { type: "object", properties: { a: text }, required: ["a"] },
      { type: "object", properties: { a: text, b: text } },
    ],
  })
})

t.test("bug 26: references and allOf are put in place", async t => {
  const schema = {
    type: "object",
    properties: {
      a: { $ref: "#/$defs/a~1b", description: "mine" },
      c: { allOf: [{ $ref: "#/$defs/d" }, { required: ["y"], properties: { y: { type: "boolean" } } }] },
      e: { $ref: "https://elsewhere.example/x" },
    },
    $defs: {
      "a/b": { type: "integer", description: "theirs" },
      d: { type: "object", properties: { x: { type: "string" } }, required: ["x"] },
    },
  }
  t.same(plain(schema).properties, {
    a: { type: "integer", description: "mine" },
    c: { type: "object", properties: { x: { type: "string" }, y: { type: "boolean" } }, required: ["x", "y"] },
    e: { type: "object" },
  })
})

t.test("a reference to itself is cut inside of allOf too, as some generators write it", async t => {
  const Node = {
    type: "object",
    properties: { left: { allOf: [{ $ref: "#/$defs/Node" }] }, right: { allOf: [{ $ref: "#/$defs/Node" }] } },
  }
  const cut = { left: { type: "object" }, right: { type: "object" } }
  t.same(plain({ allOf: [{ $ref: "#/$defs/Node" }], $defs: { Node } }), { type: "object", properties: cut })
  t.same(plain({ allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }], $defs: { a: { type: "integer" } } }), {
    type: "integer",
  })
})

t.test("a reference to itself is cut, and one that multiplies is refused", async t => {
  const tree = { type: "object", properties: { child: { $ref: "#" }, list: { type: "array", items: { $ref: "#" } } } }
  t.same(plain(tree).properties, {
    child: {
      type: "object",
      properties: { child: { type: "object" }, list: { type: "array", items: { type: "object" } } },
    },
    list: {
      type: "array",
      items: {
        type: "object",
        properties: { child: { type: "object" }, list: { type: "array", items: { type: "object" } } },
      },
    },
  })
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      `d${at}`,
      { type: "object", properties: { a: { $ref: `#/$defs/d${at + 1}` }, b: { $ref: `#/$defs/d${at + 1}` } } },
    ]),
  )
  t.throws(() => plain({ $ref: "#/$defs/d0", $defs }), refuses("tools"))
  t.same(plain({ anyOf: [{ allOf: [{ $ref: "#" }] }] }), { type: "object" })
})

t.test("a schema that is nested without end is cut where the vendor would stop reading", async t => {
  let deep: object = { type: "integer" }
  for (let level = 0; level < 300; level += 1) deep = { type: "array", items: deep }
  let depth = 0
  for (let at = plain(deep); at.items !== undefined; at = at.items as typeof at) depth += 1
  t.equal(depth, 64)
  let parts: object = { type: "integer" }
  for (let level = 0; level < 5_000; level += 1) parts = { allOf: [parts] }
  t.same(plain(parts), { type: "string" })
})

t.test("what has no type gets the one that its keywords tell, and lists always have items", async t => {
  t.same(plain({}), { type: "string" })
  t.same(plain({ items: { type: "integer" } }), { type: "array", items: { type: "integer" } })
  t.same(plain({ type: "array" }), { type: "array", items: { type: "string" } })
  t.same(plain({ type: "array", prefixItems: [{ type: "integer" }, { type: "boolean" }] }), {
    type: "array",
    items: { anyOf: [{ type: "integer" }, { type: "boolean" }] },
  })
  t.same(plain({ type: "OBJECT", properties: {} }), { type: "object" })
  t.same(plain({ type: "object", properties: { a: true, constructor: false } }).properties, {
    a: { type: "string" },
    constructor: { type: "string" },
  })
})

// ---- any schema ----

const words = ["type", "title", "nullable", "default", "format", "description", "enum", "anyOf", "items", "properties"]
const more = ["required", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum"]
const known = new Set([...words, ...more])

const isPlain = (schema: Record<string, unknown>): boolean => {
  const inner = [schema.items, ...((schema.anyOf as unknown[]) ?? []), ...Object.values(schema.properties ?? {})]
  const isTyped = schema.anyOf !== undefined || typeof schema.type === "string"
  const { required = [], properties = {} } = schema as { required?: string[]; properties?: object }
  return (
    isTyped &&
    Object.keys(schema).every(key => known.has(key)) &&
    required.every(name => Object.hasOwn(properties, name)) &&
    inner.filter(one => one !== undefined).every(one => isPlain(one as Record<string, unknown>))
  )
}

const { schema } = fc.letrec(tie => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    fc.boolean(),
    fc.record(
      {
        type: fc.constantFrom(
          "string",
          "integer",
          "object",
          "array",
          "null",
          ["string", "null"],
          ["object", "array"],
          5,
        ),
        properties: fc.dictionary(fc.string({ maxLength: 4 }), tie("schema"), { maxKeys: 3 }),
        required: fc.array(fc.string({ maxLength: 4 }), { maxLength: 2 }),
        items: fc.oneof(tie("schema"), fc.array(tie("schema"), { maxLength: 2 })),
        anyOf: fc.array(tie("schema"), { maxLength: 2 }),
        allOf: fc.array(tie("schema"), { maxLength: 2 }),
        enum: fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { maxLength: 3 }),
        const: fc.jsonValue({ maxDepth: 1 }),
        $ref: fc.constantFrom("#", "#/properties/a", "#/nowhere", 7),
        additionalProperties: tie("schema"),
        not: tie("schema"),
      },
      { requiredKeys: [] },
    ),
  ),
}))

t.test("any schema comes out in the vendor's dialect", async () => {
  fc.assert(
    fc.property(schema, given => typeof given === "boolean" || isPlain(plain(given as object))),
    { numRuns: 500 },
  )
})
