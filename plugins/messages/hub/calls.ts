/** Which tool call a fragment belongs to: by its index where vendors tell one, else by its id; not all tell both. */

import { isObject, isSet, type JsonObject, record, text } from "../../../core/index.ts"
import type { Block } from "./blocks.ts"

interface Call {
  readonly block: Block
  /** The vendor's id, once it is told. */
  id: string
}

interface Fragment {
  readonly id: string
  readonly name: string | undefined
  readonly input: string
}

export class ToolCalls {
  readonly #byIndex = new Map<unknown, Call>()
  #last: Call | undefined
  count = 0

  /** @param begin makes the block of the call of this number, counted from 0 */
  read(fragment: JsonObject, begin: (number: number) => Block): void {
    const { name, arguments: written } = record(fragment.function)
    const id = text(fragment.id) ?? ""
    const piece = text(name)
    const input = isObject(written) ? JSON.stringify(written) : (text(written) ?? "")
    const call = this.#find(fragment.index, { id, name: piece, input }) ?? this.#open(fragment.index, begin)
    const { block } = call
    if (id !== "" && call.id === "") block.id = call.id = id
    // A name may come in pieces, or again with every fragment.
    if (piece !== undefined && block.isEmpty && piece !== block.name) block.name += piece
    if (!block.closed) block.add(input)
  }

  #find(index: unknown, { id, name, input }: Fragment): Call | undefined {
    const known = isSet(index) ? this.#byIndex.get(index) : this.#last
    if (known === undefined) return undefined
    // Every call at the same index and without an id: nothing is added to an input that is whole.
    const isNews = name !== undefined && (name !== known.block.name || input.trim() !== "")
    if (id === "" && isNews && known.block.isOver) return undefined
    // Some vendors give every call the same index: another id is another call. Others make a new id for each fragment
    // of one call: only a call that begins is named.
    if (id !== "" && known.id !== "" && id !== known.id && name !== undefined) return undefined
    // Neither index nor id: a tool that is named again is called again.
    return !isSet(index) && id === "" && name !== undefined && !known.block.isEmpty ? undefined : known
  }

  #open(index: unknown, begin: (number: number) => Block): Call {
    const call = { block: begin(this.count), id: "" }
    this.count++
    this.#last = call
    if (isSet(index)) this.#byIndex.set(index, call)
    return call
  }
}
