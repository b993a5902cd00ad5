/** A vendor's error: nothing of it goes out before the exchange decided what to try next. */

/** An error answer above this is cut: nobody reads so much of an error. */
const bytesMax = 1024 * 1024

export class ErrorAnswer {
  readonly #chunks: Buffer[] = []
  #bytes = 0

  /** False when enough was read. */
  push(chunk: Buffer): boolean {
    const left = bytesMax - this.#bytes
    this.#bytes += chunk.length
    this.#chunks.push(chunk.length <= left ? chunk : chunk.subarray(0, Math.max(0, left)))
    return this.#bytes < bytesMax
  }

  body(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
