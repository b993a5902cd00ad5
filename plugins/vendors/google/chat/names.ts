/** Names of tools: what the vendor does not take travels under an alias and comes back. */

import type { ChatRequest } from "../../../../core/index.ts"
import { list, record, text } from "../../common/json.ts"

const nameMax = 64
const accepted = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/

/** Aliases by the client's names. Names that the vendor takes as they are stand for themselves. */
export type ToolNames = ReadonlyMap<string, string>

export const sentName = (names: ToolNames, name: string): string => names.get(name) ?? name

/** The client's names by their aliases. */
export const originalsOf = (names: ToolNames): ReadonlyMap<string, string> =>
  new Map([...names].map(([name, alias]) => [alias, name]))

/** The aliases that a request needs, whether it offers a tool or only tells of a call. */
export const toolNames = (request: ChatRequest): ToolNames => {
  const names = new Set(namesIn(request))
  const used = new Set([...names].filter(name => accepted.test(name)))
  const aliases = new Map<string, string>()
  for (const name of names) {
    if (accepted.test(name)) continue
    const alias = unused(name, used)
    used.add(alias)
    aliases.set(name, alias)
  }
  return aliases
}

const namesIn = ({ tools, messages }: ChatRequest): readonly string[] => {
  const calls = messages.flatMap(({ tool_calls, function_call }) => [...list(tool_calls), { function: function_call }])
  return [...list(tools), ...calls].flatMap(one => text(record(record(one).function).name) ?? [])
}

const unused = (name: string, used: ReadonlySet<string>): string => {
  const clean = name.replace(/[^A-Za-z0-9_.:-]/g, "_").replace(/^(?![A-Za-z_])/, "_")
  let alias = clean.slice(0, nameMax)
  for (let count = 2; used.has(alias); count++) alias = `${clean.slice(0, nameMax - 8)}_${count}`
  return alias
}
