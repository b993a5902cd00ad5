import fc from "fast-check"
import t from "tap"
import { alwaysRead, bodyOf, type ScannedBody, scanOptionsOf, spliceModel } from "../../core/http/body.ts"
import type { Body } from "../../core/plugin.ts"

const options = scanOptionsOf({ reads: ["messages", "input"], finds: ["file_id"] })

const read = (text: string): ScannedBody => bodyOf(Buffer.from(text), options)

t.test("a field is parsed from its own bytes", async t => {
  const body = read(
    '{"model": "a\\u0062", "n": 2, "stream":true , "messages": [{"role":"user"}], "input": null, "x": 1}',
  )
  t.equal(body.field("model"), "ab")
  t.equal(body.field("n"), 2)
  t.equal(body.field("stream"), true)
  t.same(body.field("messages"), [{ role: "user" }])
  t.equal(body.field("input"), null)
  t.equal(body.field("max_tokens"), undefined)
})

t.test("a field is parsed once", async t => {
  const body = read('{"messages": [{"role":"user"}]}')
  t.equal(body.field("messages"), body.field("messages"))
})

t.test("a field that the route does not read is a mistake of the route", async t => {
  t.throws(() => read('{"x": 1}').field("x"), /not among the fields/)
})

t.test("the whole body is parsed once, and prototypes stay out of it", async t => {
  const body = read('{"model":"m","__proto__":{"polluted":1}}')
  t.equal(body.json(), body.json())
  t.equal(body.json().model, "m")
  t.notOk("polluted" in body.json())
})

t.test("a body that is JSON but no object is 422", async t => {
  for (const text of ["[]", "1", '"a"', "null", "true"]) {
    t.throws(() => read(text), { code: "validation_failed", detail: [{ loc: ["body"], type: "object_type" }] }, text)
  }
})

t.test("an empty or broken body is 422, too deep a one is 400", async t => {
  for (const text of ["", " ", "{", "model=a"]) {
    t.throws(() => read(text), { code: "validation_failed", detail: [{ type: "json_invalid" }] }, text)
  }
  t.throws(() => read(`{"a":${"[".repeat(64)}${"]".repeat(64)}}`), { code: "too_complex" })
})

t.test("core's own fields may stand once on every route", async t => {
  for (const name of alwaysRead) {
    t.throws(() => bodyOf(Buffer.from(`{"${name}":1,"${name}":1}`), scanOptionsOf({})), {
      code: "invalid_request",
      param: name,
    })
  }
})

t.test("the scan tells what stands in the body", async t => {
  t.same([...read('{"model":"m","input":[{"file_id":"f"}]}').scan.found], [["file_id", 1]])
})

const joined = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString()

t.test("another model takes the place of the model's value, and of nothing else", async t => {
  const text = ' {"x": {"model": "a"}, "mod\\u0065l" :  "a" ,"n": 1.0, "y": 1e400, "dup":1, "dup":2} \n'
  t.equal(joined(spliceModel(read(text), 'b"é')), text.replace('"mod\\u0065l" :  "a"', '"mod\\u0065l" :  "b\\"é"'))
})

t.test("a body without a model stays as it is", async t => {
  const body = read('{"x":{"model":"a"}}')
  t.same(spliceModel(body, "b"), [body.bytes])
})

t.test("a body of another make is spliced too", async t => {
  const bytes = Buffer.from('{"model":"a"}')
  const other: Body = { bytes, field: () => "a", scan: read("{}").scan, json: () => ({ model: "a" }) }
  t.equal(joined(spliceModel(other, "b")), '{"model":"b"}')
})

t.test("property: every byte outside the model's value is the client's own", async () => {
  const blank = fc.constantFrom("", " ", "\n\t", "  \r\n")
  const member = fc.tuple(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 3 }))
  const cases = fc.record({
    before: fc.array(member, { maxLength: 4 }),
    after: fc.array(member, { maxLength: 4 }),
    model: fc.jsonValue({ maxDepth: 3 }),
    name: fc.string({ unit: "grapheme" }),
    blank,
  })
  const kept = fc.property(cases, ({ before, after, model, name, blank }) => {
    const unread = (members: [string, unknown][]) =>
      members.map(([key, value]) =>
        `${JSON.stringify(`x${key}`)}${blank}:${blank}${JSON.stringify(value)}`.toWellFormed(),
      )
    const place = (value: unknown) => {
      const own = `"model"${blank}:${blank}${JSON.stringify(value)}`.toWellFormed()
      return `${blank}{${blank}${[...unread(before), own, ...unread(after)].join(`${blank},${blank}`)}${blank}}${blank}`
    }
    return joined(spliceModel(read(place(model)), name)) === place(name)
  })
  fc.assert(kept, { numRuns: 300 })
})
