/**
 * Zstandard content of one frame or more (RFC 8878, section 3.1). Node's decoder reads on where a frame begins with a
 * chunk; where one chunk holds the end of a frame and the beginning of the next, it passes over the rest without a word.
 */

import { Transform, type TransformCallback } from "node:stream"
import { createZstdDecompress, type ZstdDecompress } from "node:zlib"

export class ZstdFrames extends Transform {
  #decoder = this.#open()

  override _transform(chunk: Buffer, coding: BufferEncoding, done: TransformCallback): void {
    const decoder = this.#decoder
    const before = decoder.bytesWritten
    decoder.write(chunk, error => {
      if (error) return // told by its event
      const read = decoder.bytesWritten - before
      if (read === chunk.length) return done()
      if (read === 0) return done(new Error("bytes that belong to no frame"))
      const next = (): void => {
        decoder.destroy()
        this.#decoder = this.#open()
        this._transform(chunk.subarray(read), coding, done)
      }
      if (decoder.readableEnded) next()
      else decoder.once("end", next)
    })
  }

  override _flush(done: TransformCallback): void {
    this.#decoder.once("end", done)
    this.#decoder.end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#decoder.destroy()
    done(error)
  }

  #open(): ZstdDecompress {
    const decoder = createZstdDecompress()
    decoder.on("data", (decoded: Buffer) => this.push(decoded))
    decoder.on("error", error => this.destroy(error))
    return decoder
  }
}
