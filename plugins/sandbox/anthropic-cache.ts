/** The prompt cache that `cache_control` asks for: a prefix is written the first time and read from then on. */

import type { JsonObject } from "../../core/index.ts"
import { record, records } from "./json.ts"
import { inputTokens } from "./tokens.ts"
import type { Ask } from "./wire.ts"

export interface CacheCounts {
  readonly read: number
  readonly written5m: number
  readonly written1h: number
}

/** Walks the markers in order; each prefix that nobody asked about before is written, from the last known one on. */
export const cacheCounts = ({ body, seen }: Pick<Ask, "body" | "seen">): CacheCounts => {
  const counts = { read: 0, written5m: 0, written1h: 0 }
  const before: unknown[] = []
  let counted = 0
  for (const { block, marker } of blocksOf(body)) {
    before.push(block)
    if (marker === undefined) continue
    const tokens = inputTokens(before)
    const kind = seen(JSON.stringify([body.model, before])) ? "read" : marker.ttl === "1h" ? "written1h" : "written5m"
    counts[kind] += tokens - counted
    counted = tokens
  }
  return counts
}

interface Marked {
  readonly block: unknown
  readonly marker: JsonObject | undefined
}

/** In the order in which the prompt is built: tools, system, messages. A marker at the top is one on the last block. */
const blocksOf = ({ tools, system, messages, cache_control }: JsonObject): readonly Marked[] => {
  const blocks = [...records(tools), ...contentOf(system), ...records(messages).flatMap(one => contentOf(one.content))]
  const all = blocks.map(unmarked)
  const last = all.at(-1)
  if (last === undefined || cache_control === undefined) return all
  return [...all.slice(0, -1), { ...last, marker: record(cache_control) }]
}

const contentOf = (content: unknown): readonly unknown[] => (typeof content === "string" ? [content] : records(content))

const unmarked = (block: unknown): Marked => {
  if (typeof block === "string") return { block, marker: undefined }
  const { cache_control: marker, ...rest } = record(block)
  return { block: rest, marker: marker === undefined || marker === null ? undefined : record(marker) }
}
