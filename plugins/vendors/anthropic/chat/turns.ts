/**
 * Turns of a conversation in the order that the vendor demands: an assistant's tool calls close its turn, and the next
 * user turn begins with one result for each, in their order.
 */

import { type JsonObject, refuse } from "../../../../core/index.ts"
import type { Block } from "./parts.ts"

export interface Turn {
  readonly role: "user" | "assistant"
  /** What the vendor thought in this turn, if it was kept. */
  readonly thinking: Block[]
  readonly content: Block[]
  readonly calls: Block[]
  results: readonly Block[]
}

/** A tool call that waits for its result. */
interface OpenCall {
  /** As the client knows it; may be empty, or the same as another one's. */
  readonly id: string
  readonly sentId: string
  result?: Block
}

export class Turns {
  readonly all: Turn[] = []
  readonly #sentIds = new Set<string>()
  #open: OpenCall[] = []

  user(blocks: readonly Block[]): void {
    if (blocks.length > 0) this.#turn("user").content.push(...blocks)
  }

  assistant(content: readonly Block[], thinking: readonly Block[]): void {
    if (content.length > 0) this.#turn("assistant").content.push(...content)
    if (thinking.length > 0) this.#turn("assistant").thinking.push(...thinking)
  }

  call(id: string, name: string, input: JsonObject): void {
    const turn = this.#turn("assistant")
    const sentId = this.#unusedId(id)
    turn.calls.push({ type: "tool_use", id: sentId, name, input })
    this.#open.push({ id, sentId })
  }

  /** @throws GatewayError (400) when no call of the assistant's last turn waits for it */
  result(id: string, content: readonly Block[], param: string): void {
    const call = this.#open.find(open => open.id === id && open.result === undefined)
    if (call === undefined) {
      throw refuse(
        param,
        `A 'tool' message must answer a tool call of the preceding assistant message; none waits for '${id}'`,
      )
    }
    this.#turn("user")
    call.result = { type: "tool_result", tool_use_id: call.sentId, ...contentOf(content) }
  }

  /** @throws GatewayError (400) when a tool call was left without its result */
  close(): void {
    const missing = this.#open.filter(({ result }) => result === undefined)
    if (missing.length > 0) {
      const ids = missing.map(({ id }) => `'${id}'`).join(", ")
      throw refuse("messages", `Each tool call needs a 'tool' message before the next turn; missing for ${ids}`)
    }
    const last = this.all.at(-1)
    if (last !== undefined && this.#open.length > 0)
      last.results = this.#open.flatMap(({ result }) => (result === undefined ? [] : [result]))
    this.#open = []
  }

  /** Neighbours of one role are one turn. */
  #turn(role: Turn["role"]): Turn {
    const last = this.all.at(-1)
    if (last?.role === role) return last
    if (role === "assistant") this.close()
    const turn: Turn = { role, thinking: [], content: [], calls: [], results: [] }
    this.all.push(turn)
    return turn
  }

  /** Ids of other vendors hold characters that this one refuses, or come again in later turns. */
  #unusedId(id: string): string {
    const clean = id.replace(/[^a-zA-Z0-9_-]/g, "_") || "call"
    let sentId = clean
    for (let count = 2; this.#sentIds.has(sentId); count++) sentId = `${clean}_${count}`
    this.#sentIds.add(sentId)
    return sentId
  }
}

/** A result that says nothing has no content; one plain text stays a string. */
const contentOf = (blocks: readonly Block[]): Block => {
  const [only, more] = blocks
  if (only === undefined) return {}
  const isPlain = more === undefined && only.cache_control === undefined && typeof only.text === "string"
  return { content: isPlain ? only.text : blocks }
}
