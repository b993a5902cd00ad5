/** Answers of Redis (RESP2) out of the bytes of one connection, however they are cut. */

export type Reply = string | number | null | RedisError | readonly Reply[]

/** An answer that begins with `-`. */
export class RedisError extends Error {}

interface OpenList {
  readonly length: number
  readonly items: Reply[]
}

const [string, error, number, bulk, list] = Buffer.from("+-:$*")
const carriageReturn = 0x0d
const minus = 0x2d
const zero = 0x30
const lineEnd = 2
/** What an element that is not whole yet wants, when its length is not known. */
const unknownLength = 1

export class ReplyReader {
  readonly #take: (reply: Reply) => void
  /** Lists that are not full yet, the innermost last. */
  readonly #open: OpenList[] = []
  /** The beginning of an element, and how many bytes there must be before it is worth another look. */
  #kept: Buffer[] = []
  #size = 0
  #wanted = 0

  constructor(take: (reply: Reply) => void) {
    this.#take = take
  }

  /** @throws Error when these are no answers of Redis */
  read(chunk: Buffer): void {
    const bytes = this.#whole(chunk)
    if (bytes === undefined) return
    for (let at = 0; at < bytes.length; ) {
      const next = this.#element(bytes, at)
      if (next === undefined) return this.#keep(bytes.subarray(at))
      at = next
    }
  }

  #whole(chunk: Buffer): Buffer | undefined {
    if (this.#size === 0) return chunk
    this.#kept.push(chunk)
    this.#size += chunk.length
    if (this.#size < this.#wanted) return undefined
    const bytes = Buffer.concat(this.#kept)
    this.#kept = []
    this.#size = 0
    return bytes
  }

  #keep(rest: Buffer): void {
    this.#kept.push(rest)
    this.#size = rest.length
  }

  /** Takes one element; where the next one begins, or `undefined` when this one is not whole. */
  #element(bytes: Buffer, at: number): number | undefined {
    let end = at + 1
    while (end < bytes.length && bytes[end] !== carriageReturn) end += 1
    const body = end + lineEnd
    if (body > bytes.length) return this.#want(unknownLength)
    switch (bytes[at]) {
      case bulk: {
        const length = whole(bytes, at + 1, end)
        if (length < 0) return this.#value(null, body)
        const next = body + length + lineEnd
        if (next > bytes.length) return this.#want(next - at)
        return this.#value(bytes.toString("utf8", body, body + length), next)
      }
      case number:
        return this.#value(whole(bytes, at + 1, end), body)
      case list: {
        const length = whole(bytes, at + 1, end)
        if (length <= 0) return this.#value(length < 0 ? null : [], body)
        this.#open.push({ length, items: [] })
        return body
      }
      case string:
        return this.#value(bytes.toString("utf8", at + 1, end), body)
      case error:
        return this.#value(new RedisError(bytes.toString("utf8", at + 1, end)), body)
      default:
        throw new Error(`Redis answered with something else: byte ${bytes[at]}`)
    }
  }

  #want(bytes: number): undefined {
    this.#wanted = bytes
  }

  #value(value: Reply, next: number): number {
    let done = value
    for (let top = this.#open.at(-1); top !== undefined; top = this.#open.at(-1)) {
      top.items.push(done)
      if (top.items.length < top.length) return next
      this.#open.pop()
      done = top.items
    }
    this.#take(done)
    return next
  }
}

/** Redis' integers have 64 bits; what we count stays below 2^53. */
const whole = (bytes: Buffer, from: number, to: number): number => {
  const negative = bytes[from] === minus
  let value = 0
  for (let at = negative ? from + 1 : from; at < to; at += 1) value = value * 10 + (bytes[at]! - zero)
  return negative ? 0 - value : value
}
