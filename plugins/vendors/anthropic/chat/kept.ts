/**
 * Thinking that must come back. While a tool loop is open, the vendor wants the thinking blocks of its own turn again,
 * unchanged and signed; chat clients do not carry them. So the gateway keeps them by the id of the first tool call.
 */

import { list, parse, record, text } from "../../common/json.ts"
import type { Block } from "./parts.ts"

/** What is larger is not kept: the next turn then goes without its thinking. */
const keptMax = 64 * 1024

/** What is kept for these blocks; signatures hold for one model only. */
export const keptText = (model: string, blocks: readonly Block[]): string | undefined => {
  if (blocks.length === 0 || !blocks.every(isSigned)) return undefined
  const kept = JSON.stringify({ model, blocks })
  return kept.length <= keptMax ? kept : undefined
}

/** The blocks that were kept; none when another model, or another wire, made them. */
export const keptBlocks = (kept: string | undefined, model: string): readonly Block[] => {
  if (kept === undefined) return []
  const found = record(parse(Buffer.from(kept)))
  const blocks = list(found.blocks).map(record)
  return found.model === model && blocks.every(isSigned) ? blocks : []
}

const isSigned = (block: Block): boolean =>
  block.type === "thinking"
    ? text(block.signature) !== undefined && typeof block.thinking === "string"
    : block.type === "redacted_thinking" && text(block.data) !== undefined
