/** The few words that a scan looks for, found by length and bytes without making a string of every key. */

import type { PartWords } from "../adapter.ts"

export type PartClass = "image" | "file"

/** Why a key is looked for. */
export interface KeyWord {
  readonly name: string
  readonly bytes: Buffer
  /** A top-level field that the gateway reads. */
  readonly read: boolean
  /** Counted at any depth. */
  readonly find: boolean
  readonly part: PartClass | undefined
  /** The key `type`, whose value may name a content part. */
  readonly type: boolean
  /** Its string is read as text by every model, whatever it looks like. */
  readonly text: boolean
}

const textKeys: ReadonlySet<string> = new Set([
  "text",
  "content",
  "input",
  "instructions",
  "system",
  "prompt",
  "query",
  "arguments",
  "description",
  "output",
  "thinking",
  // What seals it, and goes back with it: the vendors' own base64.
  "signature",
  "thoughtSignature",
  "thought_signature",
  "encrypted_content",
])

export interface TypeWord {
  readonly name: string
  readonly bytes: Buffer
  readonly part: PartClass
}

export interface Vocabulary {
  readonly keys: WordTable<KeyWord>
  readonly types: WordTable<TypeWord>
}

export interface ScanOptions {
  /** Top-level fields whose place is wanted; each may stand there once. */
  readonly reads: ReadonlySet<string>
  /** Keys counted at any depth. */
  readonly finds?: ReadonlySet<string> | undefined
  readonly parts?: PartWords | undefined
}

const prepared = new WeakMap<ScanOptions, Vocabulary>()

/** Made once for each options object: keep one per route. */
export const vocabularyOf = (options: ScanOptions): Vocabulary => {
  const ready = prepared.get(options)
  if (ready !== undefined) return ready
  const made = { keys: new WordTable(keyWords(options)), types: new WordTable(typeWords(options.parts)) }
  prepared.set(options, made)
  return made
}

const keyWords = ({ reads, finds = new Set(), parts = {} }: ScanOptions): KeyWord[] => {
  const partKeys = new Map(Object.entries(parts.keys ?? {}))
  const types = parts.types === undefined ? [] : ["type"]
  return [...new Set([...reads, ...finds, ...partKeys.keys(), ...types, ...textKeys])].map(name => ({
    name,
    bytes: Buffer.from(name),
    read: reads.has(name),
    find: finds.has(name),
    part: partKeys.get(name),
    type: types.includes(name),
    text: textKeys.has(name),
  }))
}

const typeWords = (parts: PartWords = {}): TypeWord[] =>
  Object.entries(parts.types ?? {}).map(([name, part]) => ({ name, bytes: Buffer.from(name), part }))

export class WordTable<Word extends { readonly name: string; readonly bytes: Buffer }> {
  readonly #byLength: Word[][] = []
  readonly #byName: ReadonlyMap<string, Word>

  constructor(words: readonly Word[]) {
    const longest = Math.max(0, ...words.map(word => word.bytes.length))
    for (let length = 0; length <= longest; length += 1) {
      this.#byLength.push(words.filter(word => word.bytes.length === length))
    }
    this.#byName = new Map(words.map(word => [word.name, word]))
  }

  /** The word whose bytes stand in `[start, end)`. With `escaped` they are decoded first: `mod\u0065l` is `model`. */
  find(bytes: Buffer, start: number, end: number, escaped: boolean): Word | undefined {
    if (escaped) return this.#byName.get(JSON.parse(bytes.toString("utf8", start - 1, end + 1)) as string)
    const words = end - start < this.#byLength.length ? this.#byLength[end - start]! : none
    for (let at = 0; at < words.length; at += 1) {
      if (standsAt(bytes, start, words[at]!.bytes)) return words[at] as Word
    }
    return undefined
  }
}

const none: readonly never[] = []

const standsAt = (bytes: Buffer, start: number, word: Buffer): boolean => {
  let at = 0
  while (at < word.length && bytes[start + at] === word[at]) at += 1
  return at === word.length
}
