/** Any conversation towards the generate-content wire keeps the vendor's rules and loses no text. */
import fc from "fast-check"
import t from "tap"
import { type Body, draft, tool, toolCall } from "../fixtures/google-chat.ts"

const user = (content: unknown) => ({ role: "user", content })
const text = fc.string({ unit: "binary", maxLength: 8 })
const content = fc.oneof(
  text,
  fc.array(
    text.map(one => ({ type: "text", text: one })),
    { maxLength: 3 },
  ),
)
const json = fc.oneof(text, fc.json({ maxDepth: 3 }))
const step = fc.oneof(
  content.map(one => [user(one)]),
  content.map(one => [{ role: "system", content: one }]),
  content.map(one => [{ role: "assistant", content: one }]),
  fc
    .tuple(
      content,
      fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 70 }), json, json), { minLength: 1, maxLength: 4 }),
    )
    .map(([said, calls]) => [{ said, calls }]),
)
const conversation = fc.array(step, { minLength: 1, maxLength: 8 })

type Step = { readonly said: unknown; readonly calls: readonly (readonly [string, string, string])[] }

/** Calls get ids that are unique in the conversation; results come in reverse. */
const written = (steps: readonly (readonly object[])[]): object[] =>
  steps.flat().flatMap((one, at) => {
    if (!("calls" in one)) return [one]
    const { said, calls } = one as Step
    const ids = calls.map((_, index) => `id-${at}-${index}`)
    return [
      {
        role: "assistant",
        content: said,
        tool_calls: calls.map(([name, args], index) => toolCall(ids[index]!, name, args)),
      },
      ...calls.map(([, , result], index) => tool(ids[index]!, result)).reverse(),
    ]
  })

const textsOf = (messages: readonly object[]): string =>
  messages
    .filter(message => (message as { role: string }).role !== "tool")
    .flatMap(message => {
      const said = (message as { content: unknown }).content
      return Array.isArray(said) ? said.map(part => String(part.text)) : [String(said ?? "")]
    })
    .join("")

const opening = "(The conversation begins.)"

const sentText = ({ systemInstruction, contents }: Body): string => {
  const parts = [...(systemInstruction?.parts ?? []), ...contents.flatMap(one => one.parts)]
  const all = parts.map(part => String(part.text ?? "")).join("")
  return all.replace(opening, "")
}

const calls = (turn: Body["contents"][number] | undefined) => turn?.parts.filter(part => "functionCall" in part) ?? []
const results = (turn: Body["contents"][number] | undefined) =>
  turn?.parts.filter(part => "functionResponse" in part) ?? []

const keepsRules = (messages: readonly object[], body: Body): boolean =>
  body.contents.every((turn, at) => {
    const before = body.contents[at - 1]
    const name = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/
    return (
      turn.role === (at % 2 === 0 ? "user" : "model") &&
      turn.parts.length > 0 &&
      turn.parts.every(part => part.text !== "") &&
      calls(turn).every(({ functionCall }) => name.test((functionCall as { name: string }).name)) &&
      results(turn).length === calls(before).length &&
      results(turn).every((part, index) => {
        const { functionCall } = calls(before)[index] as { functionCall: { id: string; name: string } }
        const { functionResponse } = part as { functionResponse: { id: string; name: string; response: unknown } }
        const isObject = typeof functionResponse.response === "object" && !Array.isArray(functionResponse.response)
        return functionResponse.id === functionCall.id && functionResponse.name === functionCall.name && isObject
      })
    )
  }) && sentText(body) === textsOf(messages)

t.test("any conversation keeps the vendor's rules and loses no text", async () => {
  fc.assert(
    fc.property(conversation, steps => {
      const messages = written(steps)
      if (textsOf(messages) === "" && !messages.some(message => "tool_calls" in message)) return true
      const { body, memo } = draft({ messages })
      const originals = memo as ReadonlyMap<string, string>
      return keepsRules(messages, body as unknown as Body) && new Set(originals.values()).size === originals.size
    }),
  )
})
