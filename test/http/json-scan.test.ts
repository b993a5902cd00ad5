import fc from "fast-check"
import t from "tap"
import { isGatewayError } from "../../core/errors.ts"
import { type ScannedJson, type ScanOptions, scanJson } from "../../core/http/json-scan.ts"

const options: ScanOptions = {
  reads: new Set(["model", "stream", "n", "messages"]),
  finds: new Set(["file_id", "prompt"]),
  parts: { types: { image_url: "image", input_file: "file" }, keys: { inlineData: "image", fileData: "file" } },
}

const scan = (text: string | Buffer, other: Partial<ScanOptions> = {}): ScannedJson =>
  scanJson(Buffer.from(text as string), { ...options, ...other })

/** The codes of what a text throws; `undefined` when it is taken. */
const failure = (text: string | Buffer): unknown => {
  try {
    scan(text)
    return undefined
  } catch (error) {
    return isGatewayError(error) ? error.code : error
  }
}

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

t.test("top-level fields are found where they stand, exactly", async t => {
  const text =
    ' { "model" : "a\\"b" ,\n"other": [1, {"model": 2}], "stream":true,"messages": [ {"n": {}} ] , "n" : -1.5e3 } '
  const { fields, root } = scan(text)
  const slices = Object.fromEntries([...fields].map(([name, { start, end }]) => [name, text.slice(start, end)]))
  t.same(slices, { model: '"a\\"b"', stream: "true", messages: '[ {"n": {}} ]', n: "-1.5e3" })
  t.equal(root, "object")
})

t.test("a root that is not an object is told apart", async t => {
  t.equal(scan("[1]").root, "array")
  for (const text of ["1", '"a"', "null", " true "]) t.equal(scan(text).root, "other")
  t.equal(scan('[{"model": 1}]').fields.size, 0)
})

t.test("what JSON.parse takes and refuses is taken and refused", async t => {
  const values = [
    "0",
    "-0",
    "1.0",
    "1e400",
    "-1E+2",
    "1e-2",
    "9".repeat(400),
    '""',
    '"\\u0000\\ud800\\/\\b"',
    "[ ]",
    "{ }",
  ]
  const wrong = [
    "",
    " ",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "0x1",
    "--1",
    "NaN",
    "Infinity",
    "-Infinity",
    "nul",
    "nulls",
    "True",
    "undefined",
    '"',
    '"a',
    '"\\',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"\n"',
    '"\t"',
    '"\u0000"',
    "'a'",
    "[",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "]",
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    "{,}",
    "{1:2}",
    '{"a" 1}',
    '{"a":}',
    "{a:1}",
    "[}",
    "{]",
    "[1}",
    '{"a":1]',
    "[]]",
    "{}{}",
    "1 2",
    "1,",
    "\ufeff{}",
    "\u00a01",
    "\u000b1",
    "\u000c1",
    "/* */1",
    "// x\n1",
    "[1,,2]",
    "tru",
    "t",
    "n",
    "f",
  ]
  for (const value of [...values, ...wrong]) {
    for (const text of [value, ` ${value}\r\n\t`, `[${value}]`, `{"a":${value}}`, `[0,${value} ,1]`]) {
      const expected = parses(text) ? undefined : "validation_failed"
      t.equal(failure(text), expected, JSON.stringify(text))
    }
  }
})

t.test("property: any JSON value is taken, in any spacing", async () => {
  const spaced = fc.tuple(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom(undefined, 1, "\t", 4))
  fc.assert(
    fc.property(spaced, ([value, space]) => failure(JSON.stringify(value, null, space)) === undefined),
    {
      numRuns: 300,
    },
  )
})

t.test("property: a text with one byte changed is taken exactly when JSON.parse takes it", async () => {
  const alphabet = '{}[]",:\\/bfnrtu0123456789eE+-. \n\tnullTrueFalse\u0000\u001f\u007f'
  const cases = fc.record({
    text: fc.jsonValue({ maxDepth: 4 }).map(value => JSON.stringify(value)),
    at: fc.nat(),
    cut: fc.constantFrom(0, 1),
    put: fc.oneof(fc.constant(""), fc.constantFrom(...alphabet)),
  })
  const same = fc.property(cases, ({ text, at, cut, put }) => {
    const place = at % (text.length + 1)
    const changed = (text.slice(0, place) + put + text.slice(place + cut)).toWellFormed()
    return (failure(changed) === undefined) === parses(changed)
  })
  fc.assert(same, { numRuns: 2000 })
})

t.test(
  "property: long strings are checked like short ones, wherever the odd byte stands and however memory is aligned",
  async () => {
    const odd = ['"', "\\", "\\n", '\\"', "\\u12", "\u0000", "\u001f", "\n", " ", "\u007f", "é", "😀", ""]
    const cases = fc.record({
      before: fc.nat({ max: 700 }),
      first: fc.constantFrom(...odd),
      between: fc.nat({ max: 700 }),
      second: fc.constantFrom(...odd),
      after: fc.nat({ max: 400 }),
      offset: fc.nat({ max: 9 }),
    })
    const same = fc.property(cases, ({ before, first, between, second, after, offset }) => {
      const text = `["${"x".repeat(before)}${first}${"y".repeat(between)}${second}${"z".repeat(after)}","é"]`
      const shifted = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)]).subarray(offset)
      return (failure(shifted) === undefined) === parses(text)
    })
    fc.assert(same, { numRuns: 1000 })
  },
)

t.test("broken JSON is a 422 that names the byte", async t => {
  try {
    scan('{"model": "é", }')
    t.fail("taken")
  } catch (error) {
    t.match(error, { code: "validation_failed", message: /^JSON decode error: .* at byte 16$/ })
    t.match((error as { detail: unknown }).detail, [
      { type: "json_invalid", loc: ["body", 16], msg: /^JSON decode error: /, ctx: { error: String } },
    ])
  }
})

t.test("bytes that are not UTF-8 are refused, in keys and in values", async t => {
  for (const bad of [[0xff], [0xc1, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82]]) {
    const bytes = Buffer.from(bad)
    t.equal(failure(Buffer.concat([Buffer.from('{"a":"'), bytes, Buffer.from('"}')])), "validation_failed")
    t.equal(failure(Buffer.concat([Buffer.from('{"'), bytes, Buffer.from('":1}')])), "validation_failed")
    const before = Buffer.from('{"é\ufffd世":"\ufffd\ufffd')
    t.throws(() => scan(Buffer.concat([before, bytes, Buffer.from('\ufffd"}')])), {
      message: `JSON decode error: Invalid UTF-8 at byte ${before.length}`,
    })
  }
})

t.test("64 levels pass, one more is too complex", async t => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
  t.equal(failure(nested(64)), undefined)
  t.equal(failure(nested(65)), "too_complex")
  const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
  t.equal(failure(objects(64)), undefined)
  t.equal(failure(objects(65)), "too_complex")
  t.equal(failure("[".repeat(1_000_000)), "too_complex")
  t.equal(failure(`[${"[[]],".repeat(1000)}1]`), undefined, "siblings do not add up")
})

t.test("300,000 values pass, one more is too complex", async t => {
  const many = (values: number) => `[${"1,".repeat(values - 2)}1]` // the array itself is one
  t.equal(failure(many(300_000)), undefined)
  t.equal(failure(many(300_001)), "too_complex")
  t.throws(() => scan(many(300_001)), { message: "Request body has more than 300000 values" })
})

t.test("a repeated top-level field that is read is refused, in any spelling", async t => {
  const twice = [
    '{"model":1,"model":2}',
    '{"model":1,"mod\\u0065l":2}',
    '{"\\u006dodel":{},"model":[]}',
    '{"n":null,"x":1,"n":null}',
  ]
  for (const text of twice) t.equal(failure(text), "invalid_request", text)
  t.throws(() => scan(twice[1]!), { message: "Repeated field 'model' in the request body", param: "model" })
})

t.test("an escaped key is read by its meaning", async t => {
  const { fields, found } = scan('{"mod\\u0065l":"a","x":{"file\\u005fid":"f"}}')
  t.same([...fields.keys()], ["model"])
  t.same([...found], [["file_id", 1]])
})

t.test("other repetitions pass: unread, nested, or another case", async t => {
  for (const text of [
    '{"a":1,"a":2}',
    '{"x":{"model":1,"model":2}}',
    '{"model":1,"Model":2}',
    '[{"n":1,"n":1}]',
    '{"m":{"model":1},"model":2}',
  ]) {
    t.equal(failure(text), undefined, text)
  }
})

t.test("names of prototypes are just keys", async t => {
  const text = '{"__proto__":{"model":"x"},"constructor":1,"toString":2,"model":"a"}'
  t.same([...scan(text).fields.keys()], ["model"])
  t.same([...scan(text, { reads: new Set(["__proto__", "toString"]) }).fields.keys()], ["__proto__", "toString"])
  const typed = scan('{"type":"toString"}')
  t.equal(typed.images + typed.files, 0)
})

t.test("text is counted in the bytes of string values, keys and blobs left out", async t => {
  t.equal(scan('{"a key":"four","b":["é",{"c":"\\n"}],"n":12345}').textBytes, 4 + 2 + 2)
  t.equal(scan(JSON.stringify({ a: "x".repeat(255) })).textBytes, 255)
  t.equal(scan(JSON.stringify({ a: "words and words ".repeat(100) })).textBytes, 1600)
  t.equal(scan(JSON.stringify({ a: "x".repeat(256) })).textBytes, 0)
  t.equal(scan(JSON.stringify({ [`${"k".repeat(400)}`]: "v" })).textBytes, 1)
})

t.test("what is written into keys and numbers counts as text beyond what usual requests have of them", async t => {
  const usual = 1024
  const bytesOf = (value: unknown) => scan(JSON.stringify(value)).textBytes
  t.equal(bytesOf({ ["words ".repeat(1000)]: "v" }), 6_000 + 1 + 3 - usual)
  t.equal(bytesOf({ n: Array.from({ length: 1000 }, () => 12_345) }), 1 + 5_000 + 2 * 3 - usual)
  t.equal(bytesOf({ n: Array.from({ length: 1000 }, (_, at) => [{}, 7, true, null][at % 4]) }), 1 + 3_500 + 6 - usual)
  const turns = Array.from({ length: 70 }, () => ({ role: "user", content: "hello" }))
  t.equal(bytesOf({ model: "gpt", messages: turns }), 3 + 70 * 9, "a conversation is counted by its words")
})

t.test("blobs are files in disguise, to their last byte", async t => {
  const long = "A".repeat(300)
  const images = [`data:image/png;base64,${long}`, `iVBORw0KGgo${long}`, `/9j/${long}`, `R0lGOD${long}`, `UklGR${long}`]
  const files = [`data:application/pdf;base64,${long}`, `JVBERi0${long}`, `_-${long}==`, `${long}\r\n${long}\n`]
  for (const data of images) t.match(scan(JSON.stringify({ data })), { images: 1, files: 0, textBytes: 0 })
  for (const data of files) t.match(scan(JSON.stringify({ data })), { images: 0, files: 1, textBytes: 0 })
  t.match(scan(`{"data":"data:image\\/png;base64,${long}"}`), { images: 1, files: 0 }, "an escaped slash")
  t.match(
    scan(JSON.stringify({ a: "data:image/png;base64,AAAA", b: "iVBORw0KGgo" })),
    { images: 0, files: 0, textBytes: 37 },
    "short ones are text",
  )
})

t.test("what only begins as a file is text, and so is what stands where text is read", async t => {
  const long = "A".repeat(300)
  const words = "plain words ".repeat(100)
  const texts = [
    `${long.slice(0, 250)} ${long}`,
    `${long}${words}`,
    `data:image/png;base64,${long}${words}`,
    `data:,${words}`,
  ]
  for (const data of texts) t.match(scan(JSON.stringify({ data })), { images: 0, files: 0, textBytes: data.length })
  for (const value of [long, `iVBORw0KGgo${long}`, `data:image/png;base64,${long}`, "word_".repeat(100)]) {
    const places = [
      { text: value },
      { content: value },
      { system: value },
      { input: [value] },
      { signature: value },
      { thoughtSignature: value },
      { encrypted_content: value },
      [value],
      value,
    ]
    for (const place of places) {
      t.match(scan(JSON.stringify(place)), { images: 0, files: 0, textBytes: value.length })
    }
  }
})

t.test("parts are known by the value of `type` and by keys, at any depth", async t => {
  const body = {
    messages: [
      { content: [{ type: "image_url", image_url: { url: "https://a/b" } }, { type: "input_file" }, { type: "text" }] },
    ],
    contents: [{ parts: [{ inlineData: {} }, { fileData: { fileUri: "x" } }, { inlineData: null }] }],
  }
  t.match(scan(JSON.stringify(body)), { images: 2, files: 2 })
  t.match(scan('[{"type":"image\\u005furl"},{"kind":"image_url"},{"type":{"image_url":1}}]'), { images: 1, files: 0 })
  t.match(scanJson(Buffer.from(JSON.stringify(body)), { reads: options.reads }), { images: 0, files: 0 })
})

t.test("a part that has both a word and bytes counts once", async t => {
  const png = `data:image/png;base64,${"A".repeat(300)}`
  const part = { type: "image_url", image_url: { url: png } }
  t.match(scan(JSON.stringify([part, part])), { images: 2, files: 0 })
  t.match(scan(JSON.stringify([part, { png }, { png }])), { images: 3, files: 0 })
})

t.test("keys are found at any depth when their value is not null", async t => {
  const { found } = scan(
    '{"file_id":"a","x":[{"file_id":{"file_id":1}},{"file_id":null},{"prompt":false}],"y":"file_id"}',
  )
  t.same([...found].sort(), [
    ["file_id", 3],
    ["prompt", 1],
  ])
  t.equal(scan('{"file_id":null}').found.size, 0)
})

t.test("options may be shared by many scans", async t => {
  scanJson(Buffer.from('{"model":1,"file_id":1}'), options)
  const second = scanJson(Buffer.from('{"model":1}'), options)
  t.equal(second.fields.size, 1)
  t.equal(second.found.size, 0)
})
