/**
 * The turns of a Messages request as messages of chat. Chat wants each tool call answered by a message of its own,
 * directly after the call and before anything that the user says.
 */

import { createHash } from "node:crypto"
import { isSet, type JsonObject, list, type Rules, record, refuse, text } from "../../../core/index.ts"
import { type Part, partsOf } from "./parts.ts"

type Message = Record<string, unknown>

/** A tool call that waits for its result. */
interface OpenCall {
  /** As the client wrote it; may be empty. */
  readonly id: string
  readonly sentId: string
  result?: string
}

/** @throws GatewayError (400) for blocks that chat cannot express, and for calls and results that do not pair up */
export const chatMessages = (request: JsonObject, { reasoning_back = false }: Rules): readonly Message[] => {
  const conversation = new Conversation(reasoning_back)
  conversation.instruct(systemText(request.system))
  for (const [at, message] of list(request.messages).entries()) conversation.add(record(message), `messages[${at}]`)
  return conversation.end()
}

/** A line that some command line tools put first, different in every call: it would spoil the vendor's prompt cache. */
const billingLine = /^x-anthropic-billing-header:[^\n]*\n?/i

const systemText = (system: unknown): string => {
  const texts = typeof system === "string" ? [system] : list(system).map(block => text(record(block).text) ?? "")
  return texts
    .map(told => told.replace(billingLine, ""))
    .filter(told => told !== "")
    .join("\n\n")
}

/** What stands between two assistant turns, beside results. */
type Said = { readonly role: "user"; readonly parts: Part[] } | { readonly role: "system"; readonly text: string }

class Conversation {
  readonly #withReasoning: boolean
  readonly #messages: Message[] = []
  #assistant: { content: string; reasoning: string; readonly calls: Message[] } | undefined
  #calls: OpenCall[] = []
  /** What tools showed in the turn at hand; a tool message holds text only. */
  #shown: Part[] = []
  #said: Said[] = []

  /** @param withReasoning what was thought before tool calls is sent back beside them */
  constructor(withReasoning: boolean) {
    this.#withReasoning = withReasoning
  }

  instruct(told: string): void {
    if (told !== "") this.#said.push({ role: "system", text: told })
  }

  add({ role, content }: JsonObject, param: string): void {
    if (role === "assistant") return this.#addAssistant(content, `${param}.content`)
    this.#closeAssistant()
    if (role === "user") this.#addUser(content, `${param}.content`)
    else if (role === "system") this.instruct(systemText(content))
    else throw refuse(`${param}.role`, "A message's role must be user, assistant or system")
  }

  end(): readonly Message[] {
    this.#closeAssistant()
    this.#closeUser()
    return this.#messages
  }

  /** Neighbours are one turn. The vendor's own tools are no other model's business; thoughts are no text. */
  #addAssistant(content: unknown, param: string): void {
    if (this.#assistant === undefined) this.#closeUser()
    const turn = this.#assistant ?? { content: "", reasoning: "", calls: [] }
    this.#assistant = turn
    if (typeof content === "string") turn.content += content
    for (const [at, one] of list(content).entries()) {
      const block = record(one)
      if (block.type === "text") turn.content += text(block.text) ?? ""
      else if (block.type === "thinking") turn.reasoning += text(block.thinking) ?? ""
      else if (block.type === "tool_use") turn.calls.push(this.#callFrom(block, `${param}[${at}]`))
    }
  }

  #callFrom({ id, name, input }: JsonObject, param: string): Message {
    if (text(name) === undefined) throw refuse(`${param}.name`, "A tool call needs the name of a tool")
    const wanted = text(id) ?? ""
    const sentId = sentCallId(wanted === "" ? param : wanted)
    this.#calls.push({ id: wanted, sentId })
    return { id: sentId, type: "function", function: { name, arguments: JSON.stringify(record(input)) } }
  }

  #addUser(content: unknown, param: string): void {
    if (typeof content === "string") return this.#say(partsOf(content, param))
    for (const [at, one] of list(content).entries()) {
      const block = record(one)
      if (block.type === "tool_result") this.#addResult(block, `${param}[${at}]`)
      else this.#say(partsOf([block], param))
    }
  }

  #say(parts: readonly Part[]): void {
    if (parts.length === 0) return
    const last = this.#said.at(-1)
    if (last?.role === "user") last.parts.push(...parts)
    else this.#said.push({ role: "user", parts: [...parts] })
  }

  /** A result without an id answers the first call that waits. */
  #addResult(block: JsonObject, param: string): void {
    const id = text(block.tool_use_id)
    const call = this.#calls.find(open => open.result === undefined && (id === undefined || open.id === id))
    if (call === undefined) {
      throw refuse(`${param}.tool_use_id`, `No tool call of the preceding assistant turn waits for '${id ?? ""}'`)
    }
    const parts = partsOf(block.content, `${param}.content`)
    const told = textOf(parts.filter(({ type }) => type === "text"))
    call.result = `${block.is_error === true ? "Error: " : ""}${told || "(no output)"}`
    this.#shown.push(...parts.filter(({ type }) => type !== "text"))
  }

  #closeAssistant(): void {
    if (this.#assistant === undefined) return
    const { content, reasoning, calls } = this.#assistant
    this.#assistant = undefined
    if (content === "" && calls.length === 0) return
    const told = content === "" ? null : content
    const thought = this.#withReasoning && reasoning !== "" ? { reasoning_content: reasoning } : {}
    const called = calls.length > 0 ? { ...thought, tool_calls: calls } : {}
    this.#messages.push({ role: "assistant", content: told, ...called })
  }

  /** Results of tools first, then what they showed, then what was said. */
  #closeUser(): void {
    for (const { id, sentId, result } of this.#calls) {
      if (result === undefined) throw refuse("messages", `The tool call '${id}' has no tool_result in the next turn`)
      this.#messages.push({ role: "tool", tool_call_id: sentId, content: result })
    }
    const shown: readonly Said[] = this.#shown.length > 0 ? [{ role: "user", parts: this.#shown }] : []
    for (const said of [...shown, ...this.#said]) {
      this.#messages.push({ role: said.role, content: said.role === "system" ? said.text : contentOf(said.parts) })
    }
    this.#calls = []
    this.#shown = []
    this.#said = []
  }
}

/** Text alone is a string: every vendor takes that. */
const contentOf = (parts: readonly Part[]): string | readonly Part[] =>
  parts.every(({ type }) => type === "text") ? textOf(parts) : parts

const textOf = (parts: readonly Part[]): string =>
  parts
    .map(part => part.text)
    .filter(isSet)
    .join("\n\n")

/** OpenAI takes ids of 40 characters; the same id becomes the same short one in every turn, and a short one stays. */
export const sentCallId = (id: string): string =>
  id.length <= 40 && /^[\w-]+$/.test(id) ? id : `call_${createHash("sha256").update(id).digest("hex").slice(0, 24)}`
