/** YAML text to located values: core types only, no tags of its own, no repeated keys, bounded in every way. */

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from "yaml"
import type { Position } from "./config.ts"
import { Field, type Shape } from "./field.ts"
import { ConfigError, type Problems, problemText } from "./problems.ts"

/** Far above any real catalog; below what would stall a start. */
const maxBytes = 4 * 1024 * 1024
const maxValues = 300_000
const maxDepth = 64

/**
 * @param file how the file is named in problems
 * @throws ConfigError when the text is no acceptable YAML; what is wrong with its values is added to `problems`
 */
export const readYaml = (text: string, file: string, problems: Problems): Field => {
  const start = { file, line: 1, column: 1 }
  if (Buffer.byteLength(text) > maxBytes) throw refusal(start, `expected at most ${maxBytes} bytes`)
  try {
    return parsed(text, file, problems)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    // The parser recurses: nesting beyond its stack is a RangeError.
    throw refusal(
      start,
      error instanceof RangeError ? "is nested too deeply" : `is not valid YAML: ${messageOf(error)}`,
    )
  }
}

/** Without the usual log level, a second document would be dropped in silence; known tags beyond core stay unknown. */
const options = { schema: "core", resolveKnownTags: false, prettyErrors: false, logLevel: "error" } as const

const refusal = (at: Position, message: string): ConfigError => new ConfigError([problemText(at, "", message)])

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The parser's own message tells programmers to call another function. */
const wordsOf = ({ code, message }: { readonly code: string; readonly message: string }): string =>
  code === "MULTIPLE_DOCS" ? "expected one document, and here begins another of multiple documents" : message

const parsed = (text: string, file: string, problems: Problems): Field => {
  const lines = new LineCounter()
  const document = parseDocument(text, { ...options, lineCounter: lines })
  const faults = [...document.errors, ...document.warnings]
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(1, line), column: Math.max(1, col) }
  }
  if (faults.length > 0)
    throw new ConfigError(faults.slice(0, 20).map(fault => problemText(at(fault.pos[0]), "", wordsOf(fault))))
  return new Conversion(document, at, problems).field(document.contents, "", 0)
}

/** One walk over a document; counts what it makes, aliases included. */
class Conversion {
  readonly #document: Document.Parsed
  readonly #at: (offset: number) => Position
  readonly #problems: Problems
  #values = 0

  constructor(document: Document.Parsed, at: (offset: number) => Position, problems: Problems) {
    this.#document = document
    this.#at = at
    this.#problems = problems
  }

  field(node: ParsedNode | null, path: string, depth: number): Field {
    const at = this.#at(node?.range[0] ?? 0)
    this.#values += 1
    if (this.#values > maxValues) throw refusal(at, `expected at most ${maxValues} values, aliases followed`)
    if (depth > maxDepth) throw refusal(at, `expected at most ${maxDepth} levels`)
    if (isAlias(node)) return this.#aliased(node.resolve(this.#document), at, path, depth)
    return new Field(path, at, this.#shape(node, at, path, depth), this.#problems)
  }

  #aliased(node: unknown, at: Position, path: string, depth: number): Field {
    if (node === undefined) throw refusal(at, "expected an anchor of this name before it")
    return this.field(node as ParsedNode, path, depth + 1)
  }

  #shape(node: ParsedNode | null, at: Position, path: string, depth: number): Shape {
    if (isMap(node)) return { kind: "map", entries: this.#entries(node, path, depth) }
    if (isSeq(node)) {
      return {
        kind: "list",
        items: node.items.map((item, index) => this.field(item, join(path, String(index)), depth + 1)),
      }
    }
    const value = isScalar(node) ? node.value : null
    if (value === null || ["string", "number", "boolean"].includes(typeof value)) {
      return { kind: "value", value: value as string | number | boolean | null }
    }
    throw refusal(at, "expected a text, a number, true, false or null")
  }

  #entries(node: YAMLMap.Parsed, path: string, depth: number): ReadonlyMap<string, Field> {
    const entries = new Map<string, Field>()
    for (const { key, value } of node.items) {
      const at = this.#at(key.range[0])
      if (!isScalar(key) || key.value === null) throw refusal(at, "expected a plain key")
      const name = keyText(key)
      // `5` and `"5"` are one key to us, though YAML tells them apart.
      if (entries.has(name)) throw new ConfigError([problemText(at, join(path, name), "the key is repeated")])
      // A value that is not written stands where its key stands.
      const located =
        value === null ? new Field(join(path, name), at, { kind: "value", value: null }, this.#problems) : undefined
      entries.set(name, located ?? this.field(value, join(path, name), depth + 1))
    }
    return entries
  }
}

/** A key as it is written: `480`, `1.0` and `1e3` stay what the author sees. */
const keyText = (key: Scalar.Parsed): string => (typeof key.value === "string" ? key.value : key.source)

const join = (path: string, step: string): string => (path === "" ? step : `${path}.${step}`)
