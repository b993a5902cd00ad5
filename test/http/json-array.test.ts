/** JSON arrays that arrive piece by piece, cut anywhere. */
import fc from "fast-check"
import t from "tap"
import { JsonArraySplitter } from "../../core/http/json-array.ts"

const split = (chunks: readonly Buffer[], maxEventBytes = 1_000_000) => {
  const elements: string[] = []
  let overflows = 0
  const splitter = new JsonArraySplitter(event => elements.push(event.data.toString()), {
    maxEventBytes,
    onOverflow: () => overflows++,
  })
  for (const chunk of chunks) splitter.push(chunk)
  splitter.end()
  return { elements, overflows }
}

const cut = (bytes: Buffer, size: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size))

const trim = (element: string): string => element.trim()

const cases: Readonly<Record<string, readonly [array: string, elements: readonly string[]]>> = {
  "elements are cut at the commas between them": [
    '[{"a":1}\n,\r\n{"b":[1,{"c":2}]}\n]\n',
    ['{"a":1}', '{"b":[1,{"c":2}]}'],
  ],
  "brackets, commas and quotes in strings are text": [
    '[{"a":"],}\\"[{\\\\"},{"b":1}]',
    ['{"a":"],}\\"[{\\\\"}', '{"b":1}'],
  ],
  "an empty array has none": [" [ ]", []],
  "nothing has none": ["", []],
  "a lone object is one element": ['{"error":{"code":429}}\n', ['{"error":{"code":429}}']],
  "what follows the array is ignored": ['[{"a":1}]{"b":2}', ['{"a":1}']],
  "an element that the end cuts is not delivered": ['[{"a":1},{"b":', ['{"a":1}']],
  "numbers and words are elements": ['[1, true ,"a,b"]', ["1", "true", '"a,b"']],
  "arrays in the array are elements": ["[[1,2],[3]]", ["[1,2]", "[3]"]],
  "text of any alphabet stays whole": ['[{"a":"漢字🧡"},{"b":"é"}]', ['{"a":"漢字🧡"}', '{"b":"é"}']],
}

for (const [name, [array, expected]] of Object.entries(cases)) {
  t.test(name, async t => {
    const bytes = Buffer.from(array)
    t.same(split([bytes]).elements.map(trim), expected, "in one piece")
    t.same(split(cut(bytes, 1)).elements.map(trim), expected, "byte by byte")
    for (let at = 1; at < bytes.length; at++) {
      t.same(split([bytes.subarray(0, at), bytes.subarray(at)]).elements.map(trim), expected, `cut at ${at}`)
    }
  })
}

t.test("an element is delivered with the byte that ends it", async t => {
  const seen: string[] = []
  const splitter = new JsonArraySplitter(event => seen.push(event.data.toString()), {
    maxEventBytes: 99,
    onOverflow() {},
  })
  splitter.push(Buffer.from('[{"a":1}'))
  t.same(seen, ['{"a":1}'])
  splitter.push(Buffer.from(',{"b":2}'))
  t.same(seen, ['{"a":1}', '{"b":2}'])
})

t.test("an element over the bound is skipped to its end, once, and the next one is seen", async t => {
  const large = JSON.stringify({ a: "],[".repeat(100) })
  const bytes = Buffer.from(`[{"a":1},${large},{"b":2},${large}]`)
  for (const size of [1, 7, 64, bytes.length]) {
    const found = split(cut(bytes, size), 100)
    t.same(found, { elements: ['{"a":1}', '{"b":2}'], overflows: 2 }, `in chunks of ${size}`)
  }
})

t.test("any array of objects, any cuts, any spaces", async () => {
  const property = fc.property(
    fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 6 }),
    fc.integer({ min: 1, max: 30 }),
    fc.constantFrom(undefined, 1, "\t"),
    (objects, size, indent) => {
      const bytes = Buffer.from(JSON.stringify(objects, null, indent))
      const { elements } = split(cut(bytes, size))
      return JSON.stringify(elements.map(element => JSON.parse(element))) === JSON.stringify(objects)
    },
  )
  fc.assert(property, { numRuns: 400 })
})
