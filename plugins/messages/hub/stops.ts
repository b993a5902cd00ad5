/** Stop sequences beyond those that the model takes: the answer is cut here, where the vendor would have cut it. */

export class Stops {
  /** The sequence that ended the answer. */
  matched: string | undefined
  readonly #sequences: readonly string[]
  /** The end of the text so far, as long as it may be the beginning of a sequence. */
  #held = ""

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences
  }

  /** What of the text may go out. */
  push(more: string): string {
    if (this.#sequences.length === 0) return more
    if (this.matched !== undefined) return ""
    const text = this.#held + more
    const end = this.#endOf(text)
    const out = text.slice(0, end ?? text.length - this.#beginning(text))
    this.#held = end === undefined ? text.slice(out.length) : ""
    return out
  }

  /** Nothing follows that could complete a sequence: what was held back. */
  flush(): string {
    const held = this.#held
    this.#held = ""
    return held
  }

  /** Where the answer ends: before the sequence that is complete first, the longer one of two. */
  #endOf(text: string): number | undefined {
    let first: { readonly start: number; readonly end: number } | undefined
    for (const sequence of this.#sequences) {
      const start = text.indexOf(sequence)
      const end = start + sequence.length
      if (start < 0 || (first !== undefined && (end > first.end || (end === first.end && start > first.start))))
        continue
      first = { start, end }
      this.matched = sequence
    }
    return first?.start
  }

  /** How long the end of the text is that begins a sequence. */
  #beginning(text: string): number {
    const longest = Math.max(...this.#sequences.map(sequence => sequence.length)) - 1
    for (let length = Math.min(longest, text.length); length > 0; length -= 1) {
      const end = text.slice(-length)
      if (this.#sequences.some(sequence => sequence.startsWith(end))) return length
    }
    return 0
  }
}
