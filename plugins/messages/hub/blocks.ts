/**
 * Content blocks in the order that the Messages wire wants: one open at a time, indexes without gaps. Chat may interleave
 * what it likes; whatever cannot go out yet waits in its block.
 */

import { isObject, type JsonObject } from "../../../core/index.ts"
import { toolName } from "./answer.ts"

export type MessageEvent = { readonly type: string } & JsonObject

type Kind = "text" | "thinking" | "tool_use"

/** The delta of each kind of block, and the field that carries its text. */
const deltas = {
  text: ["text_delta", "text"],
  thinking: ["thinking_delta", "thinking"],
  tool_use: ["input_json_delta", "partial_json"],
} as const satisfies Record<Kind, readonly [string, string]>

export class Block {
  readonly kind: Kind
  id = ""
  name = ""
  /** Text that has not gone out yet. */
  pending = ""
  closed = false
  /** All of a tool's input, to see whether it is whole; looked at only when something else waits behind it. */
  #input = ""
  #lookedAt = 0
  #isWhole = false

  constructor(kind: Kind) {
    this.kind = kind
  }

  add(more: string): void {
    this.pending += more
    if (this.kind === "tool_use") this.#input += more
  }

  get isEmpty(): boolean {
    return this.#input === ""
  }

  /** May something else follow? A tool's input is over when it is a whole JSON object: fragments of calls may interleave. */
  get isOver(): boolean {
    if (this.kind !== "tool_use") return true
    if (this.#lookedAt !== this.#input.length) {
      this.#lookedAt = this.#input.length
      this.#isWhole = isObjectText(this.#input)
    }
    return this.#isWhole
  }
}

const isObjectText = (written: string): boolean => {
  try {
    return isObject(JSON.parse(written))
  } catch {
    return false
  }
}

export class BlockQueue {
  readonly #waiting: Block[] = []
  #opened = false
  #index = 0

  /** Appends to the last block when it is of this kind, else begins one. */
  add(kind: "text" | "thinking", more: string): void {
    const last = this.#waiting.at(-1)
    const block = last?.kind === kind ? last : this.begin(kind)
    block.add(more)
  }

  begin(kind: Kind): Block {
    const block = new Block(kind)
    this.#waiting.push(block)
    return block
  }

  /** The events that can go out now. */
  take(): readonly MessageEvent[] {
    return this.#run(block => block.isOver && this.#waiting.length > 1)
  }

  /** Nothing follows: everything goes out. */
  end(): readonly MessageEvent[] {
    return this.#run(() => true)
  }

  #run(mayClose: (block: Block) => boolean): readonly MessageEvent[] {
    const events: MessageEvent[] = []
    for (let block = this.#waiting[0]; block !== undefined; block = this.#waiting[0]) {
      const closes = mayClose(block)
      this.#write(block, closes, events)
      if (!closes) break
      events.push({ type: "content_block_stop", index: this.#index })
      block.closed = true
      this.#waiting.shift()
      this.#opened = false
      this.#index++
    }
    return events
  }

  #write(block: Block, closes: boolean, events: MessageEvent[]): void {
    // A tool's name may come in pieces: it is complete when its input begins.
    if (block.kind === "tool_use" && block.isEmpty && !closes) return
    if (!this.#opened) events.push({ type: "content_block_start", index: this.#index, content_block: startOf(block) })
    this.#opened = true
    if (block.pending === "") return
    const [type, field] = deltas[block.kind]
    events.push({ type: "content_block_delta", index: this.#index, delta: { type, [field]: block.pending } })
    block.pending = ""
  }
}

const startOf = ({ kind, id, name }: Block): JsonObject => {
  if (kind === "tool_use") return { type: kind, id, name: toolName(name), input: {} }
  return kind === "text" ? { type: kind, text: "" } : { type: kind, thinking: "", signature: "" }
}
