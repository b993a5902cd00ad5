/** Gathers a stream's thinking blocks up to the first tool call, to be kept with that call. */

import type { ChatContext } from "../../../../core/index.ts"
import { type JsonObject, text } from "../../common/json.ts"
import { keptText } from "./kept.ts"

interface Thought {
  readonly block: JsonObject
  thinking: string
  signature: string
}

type Listener = Pick<ChatContext, "keep" | "target">

export class ThinkingLog {
  readonly #listener: Listener
  readonly #thoughts = new Map<unknown, Thought>()
  #done: boolean

  constructor(listener: Listener) {
    this.#listener = listener
    this.#done = listener.keep === undefined
  }

  block(index: unknown, block: JsonObject): void {
    if (this.#done || (block.type !== "thinking" && block.type !== "redacted_thinking")) return
    this.#thoughts.set(index, { block, thinking: text(block.thinking) ?? "", signature: text(block.signature) ?? "" })
  }

  delta(index: unknown, delta: JsonObject): void {
    const thought = this.#done ? undefined : this.#thoughts.get(index)
    if (thought === undefined) return
    thought.thinking += text(delta.thinking) ?? ""
    thought.signature += text(delta.signature) ?? ""
  }

  /** The first call of a tool: what was thought until now belongs to it. */
  call(id: string): void {
    if (this.#done) return
    this.#done = true
    const kept = keptText(this.#listener.target.model, [...this.#thoughts.values()].map(blockOf))
    if (kept !== undefined) this.#listener.keep?.(id, kept)
  }
}

const blockOf = ({ block, thinking, signature }: Thought): JsonObject =>
  block.type === "thinking" ? { type: "thinking", thinking, signature } : block
