/** Answers that come coded although identity was asked for: decoded as they arrive, within a bound. */

import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib"
import { ZstdFrames } from "./zstd-frames.ts"

export interface Decoding {
  write(chunk: Buffer): void
  /** Calls back when everything decoded has been handed over. Where no byte came, there is nothing to decode. */
  end(done: () => void): void
  /** Gives up: nothing is handed over any more. */
  close(): void
}

/** No coding at all, in any spelling. */
export const isIdentity = (coding: string): boolean => coding === "" || coding.trim().toLowerCase() === "identity"

/** Does a client that sent this `accept-encoding` take the coding (RFC 9110 section 12.5.3)? Without the field: no. */
export const accepts = (field: string | string[] | undefined, coding: string): boolean =>
  String(field ?? "")
    .toLowerCase()
    .split(",")
    .some(entry => {
      const [name = "", ...parameters] = entry.split(";").map(part => part.trim())
      return name === coding.trim().toLowerCase() && !parameters.some(refusing)
    })

const refusing = (parameter: string): boolean => /^q\s*=\s*0(?:\.0*)?$/.test(parameter)

const makers: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: () => new ZstdFrames(),
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
  const name = coding.trim().toLowerCase()
  const make = Object.hasOwn(makers, name) ? makers[name] : undefined
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
      end: done => done(),
      close: () => {
        over = true
      },
    }
  }
  const stream = make()
  let begun = false
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
      begun = true
      if (!over) stream.write(chunk)
    },
    end: done => {
      onEnd = done
      if (over || !begun) done()
      else stream.end()
    },
    close: () => {
      over = true
      stream.destroy()
    },
  }
}
