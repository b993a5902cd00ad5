/** Answers that come coded although identity was asked for: decoded as they arrive, within a bound. */

import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress, type Zlib } from "node:zlib"

export interface Decoding {
  write(chunk: Buffer): void
  /** Calls back when everything decoded has been handed over. */
  end(done: () => void): void
}

const makers: Readonly<Record<string, () => Transform & Zlib>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/**
 * @param sink gets the decoded bytes
 * @param spoilt called once when the coding is unknown, broken, or gives more than `maxBytes` (a bomb)
 */
export const decoding = (
  coding: string,
  sink: (chunk: Buffer) => void,
  spoilt: () => void,
  maxBytes: number,
): Decoding => {
  const make = Object.hasOwn(makers, coding.toLowerCase()) ? makers[coding.toLowerCase()] : undefined
  let over = false
  let onEnd: (() => void) | undefined
  const giveUp = (): void => {
    if (over) return
    over = true
    spoilt()
    onEnd?.()
  }
  if (make === undefined) {
    return {
      write: giveUp,
      end: done => {
        giveUp()
        done()
      },
    }
  }
  const stream = make()
  let bytes = 0
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes) {
      giveUp()
      stream.destroy()
    } else if (!over) sink(chunk)
  })
  stream.on("error", giveUp)
  stream.on("end", () => {
    over = true
    onEnd?.()
  })
  return {
    write: chunk => {
      if (!over) stream.write(chunk)
    },
    end: done => {
      onEnd = done
      if (over) done()
      else stream.end()
    },
  }
}
