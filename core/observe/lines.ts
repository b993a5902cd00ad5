/** Lines to the standard output: many in one write, none waited for, dropped when nobody reads them any more. */

import { write, writeSync } from "node:fs"

export interface LineWriter {
  /** A whole line, with its line feed. */
  write(line: string): void
  /** Writes what waits before it returns: for the end of a process. */
  flush(): void
}

export interface LineWriterOptions {
  /** Written as soon as this many characters wait. */
  readonly together: number
  /** Beyond it, lines are dropped until some are written. */
  readonly most: number
  /** Written at least as often, however few they are. */
  readonly everyMs: number
}

/** A full pipe is tried again at the end of the process, for a second in all. */
const lastTries = 100
const lastPauseMs = 10

const pause = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/**
 * @param fd a file, a terminal or a pipe. A pipe whose reader left takes no further line; a write that fails otherwise
 *           (a full disk) costs its own lines only
 */
export const createLineWriter = (fd: number, { together, most, everyMs }: LineWriterOptions): LineWriter => {
  let waiting = ""
  /** Given to the system, or what it did not take yet. */
  let batch: Buffer | undefined
  let isWriting = false
  let isClosed = false

  const drop = (error: NodeJS.ErrnoException): void => {
    batch = undefined
    if (error.code !== "EPIPE" && error.code !== "EBADF") return
    isClosed = true
    waiting = ""
    clearInterval(timer)
  }

  const nextBatch = (): Buffer | undefined => {
    if (batch === undefined && waiting !== "") {
      batch = Buffer.from(waiting)
      waiting = ""
    }
    return batch
  }

  const take = (bytes: number): void => {
    if (batch !== undefined) batch = bytes < batch.length ? batch.subarray(bytes) : undefined
  }

  /** A pipe that is full for now (EAGAIN) is tried again by the timer. */
  const start = (): void => {
    const bytes = isWriting ? undefined : nextBatch()
    if (bytes === undefined) return
    isWriting = true
    write(fd, bytes, (error, written) => {
      isWriting = false
      if (error?.code === "EAGAIN") return
      if (error) drop(error)
      else take(written)
      if (batch !== undefined || waiting.length >= together) start()
    })
  }

  const flush = (): void => {
    if (isWriting) batch = undefined // the system has it already
    for (let tries = 0; !isClosed && nextBatch() !== undefined; ) {
      try {
        take(writeSync(fd, batch!))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") drop(error as NodeJS.ErrnoException)
        else if (++tries < lastTries) pause(lastPauseMs)
        else return
      }
    }
  }

  const timer = setInterval(start, everyMs)
  timer.unref()
  return {
    write(line) {
      if (isClosed || waiting.length + line.length > most) return
      waiting += line
      if (waiting.length >= together) start()
    },
    flush,
  }
}
