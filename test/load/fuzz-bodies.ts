/** JSON bodies that are nearly right, on every route that reads one: an answer or a refusal in words, never a 500. */

import fc from "fast-check"
import type { TestGateway } from "../../core/testing.ts"
import { stillRight } from "./fuzz-http.ts"
import { expect, type FuzzOptions, type FuzzReport, fuzz } from "./fuzz-report.ts"
import { openTarget } from "./fuzz-target.ts"

const messages = [
  { role: "system", content: "Be brief" },
  { role: "user", content: [{ type: "text", text: "How is the weather in Seoul?" }] },
]
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const tools = [{ type: "function", function: { name: "weather", parameters: schema } }]

const chat = (model: string) => ({
  model,
  messages,
  tools,
  tool_choice: "auto",
  max_tokens: 20,
  temperature: 1,
  stream: false,
  n: 1,
  stop: ["x"],
  stream_options: { include_usage: true },
})

const anthropicMessages = (model: string) => ({
  model,
  max_tokens: 20,
  stream: false,
  system: [{ type: "text", text: "Be brief", cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  tools: [{ name: "weather", input_schema: schema }],
})

const generate = {
  contents: [{ role: "user", parts: [{ text: "hi" }] }],
  generationConfig: { maxOutputTokens: 20, candidateCount: 1 },
  tools: [{ functionDeclarations: [{ name: "weather", parameters: schema }] }],
}

const bodies: readonly (readonly [path: string, body: object])[] = [
  ["/chat/completions/", chat("gpt")],
  ["/chat/completions/", chat("claude")],
  ["/chat/completions/", chat("gemini")],
  ["/vendor-a/v1/messages/", anthropicMessages("claude")],
  ["/vendor-a/v1/messages/", anthropicMessages("gpt")],
  ["/vendor-a/v1/messages/count_tokens/", { ...anthropicMessages("claude"), max_tokens: undefined }],
  ["/vendor-b/v1beta/models/gemini:generateContent/", generate],
  ["/vendor-b/v1beta/models/gemini:streamGenerateContent/?alt=sse", generate],
  ["/vendor-b/v1beta/models/gemini:countTokens/", generate],
  ["/responses/", { model: "gpt", input: [{ role: "user", content: "hi" }], max_output_tokens: 20, stream: false }],
  ["/embeddings/", { model: "vectors", input: ["a", "b"], encoding_format: "base64", dimensions: 4 }],
  ["/rerank/", { model: "rerank", query: "a", documents: ["a", "b"], top_n: 1, return_documents: true }],
  ["/guard/", { model: "guard", input: "hi" }],
  ["/decisions/", { model: "gpt", state: "s", questions: { a: { type: "score", instructions: "i", criteria: "c" } } }],
]

let nested: unknown = "deep"
for (let depth = 0; depth < 70; depth += 1) nested = [nested]

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    "",
    -1,
    0,
    1.5,
    2 ** 53,
    [],
    {},
    [[]],
    nested,
    "\ud800",
    "__proto__",
    "constructor",
    "gpt",
    "claude",
    "x".repeat(70_000),
  ),
  fc.jsonValue(),
)

const change = fc.record({
  where: fc.nat(),
  how: fc.constantFrom("replace" as const, "remove" as const, "add" as const, "twice" as const),
  name: fc.oneof(fc.constantFrom("__proto__", "constructor", "model", "stream", "n", "type", "role", ""), fc.string()),
  value: odd,
})
type Change = typeof change extends fc.Arbitrary<infer One> ? One : never

/** Every object and array inside, outermost first. */
const nodesOf = (value: unknown): object[] =>
  typeof value === "object" && value !== null ? [value, ...Object.values(value).flatMap(nodesOf)] : []

const changed = (body: object, changes: readonly Change[]): object => {
  const copy = structuredClone(body)
  for (const { where, how, name, value: shared } of changes) {
    const value = structuredClone(shared) // later changes may go into it
    const nodes = nodesOf(copy)
    const node = nodes[where % nodes.length] as Record<string, unknown>
    const keys = Object.keys(node)
    const key = keys[where % Math.max(1, keys.length)]
    if (how === "add" && Array.isArray(node)) node.push(value)
    else if (how === "add")
      Object.defineProperty(node, name, { value, enumerable: true, configurable: true, writable: true })
    else if (key === undefined) continue
    else if (how === "remove") delete node[key]
    else if (how === "replace") node[key] = value
    else node[key] = [node[key], node[key]]
  }
  return copy
}

/** Most bodies stay JSON: broken ones are all refused in one place. */
const textChange = fc.oneof(
  { weight: 9, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.record({ at: fc.nat(), cut: fc.nat({ max: 20 }), text: fc.string({ maxLength: 8 }) }) },
)

const textOf = (body: object, edit: { at: number; cut: number; text: string } | null): string => {
  const text = JSON.stringify(body)
  if (edit === null) return text
  const at = edit.at % (text.length + 1)
  return text.slice(0, at) + edit.text + text.slice(at + edit.cut)
}

const casesAtOnce = 40

export const fuzzBodies = async (options: FuzzOptions): Promise<FuzzReport> => {
  const target = await openTarget()
  try {
    const report = await fuzz("bodies", options, async (_, seed) => {
      const seen: string[] = []
      const body = fc.tuple(fc.constantFrom(...bodies), fc.array(change, { maxLength: 4 }), textChange)
      const property = fc.asyncProperty(body, async ([[path, base], changes, edit]) => {
        seen.push(await answerOf(target, path, textOf(changed(base, changes), edit)))
      })
      await fc.assert(property, { seed, numRuns: casesAtOnce, endOnFailure: false })
      return seen
    })
    report.cases *= casesAtOnce
    await stillRight(target, report)
    return report
  } finally {
    await target.close()
  }
}

/** Its status. @throws Error when the gateway or its simulators failed, or an error has no words */
const answerOf = async (target: TestGateway, path: string, text: string): Promise<string> => {
  const answer = await target.call(path, text)
  const said = await answer.text()
  // A 502 here would be a simulator that broke: no vendor of this test fails by itself.
  expect(answer.status < 500, `${path} ${text.slice(0, 1_000)} was answered ${said}`)
  if (answer.status >= 400 && answer.headers.get("content-type")?.includes("json") === true)
    expect(/"(detail|error|message)":/.test(said), `${path} was refused without words: ${said}`)
  return String(answer.status)
}
