/** The log: one JSON line per event, cleaned before it is written. The owner of pino. */

import { pino } from "pino"
import type { Log } from "../plugin.ts"
import { cleanFields, cleanText } from "./clean.ts"

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent"

export interface ChildLog extends Log {
  /** A log whose lines all carry these fields too. */
  child(fields: object): ChildLog
}

export interface LogOptions {
  /** Lines below it are not written, nor their fields looked at. */
  readonly level: LogLevel
  /** Takes whole lines, each with its line feed; the default is the standard output, buffered. */
  readonly destination?: { write(line: string): void }
}

/**
 * Lines wait for 8 KB or 200 ms, and are written when the process exits: a write per line would cost more than the
 * line. When nobody reads, lines beyond 16 MB are dropped.
 */
const buffered = () =>
  pino.destination({ dest: 1, sync: false, minLength: 8 * 1024, maxLength: 16 * 2 ** 20, periodicFlush: 200 })

export const createLog = ({ level, destination }: LogOptions): ChildLog =>
  wrap(pino({ level, base: null, formatters: { level: label => ({ level: label }) } }, destination ?? buffered()))

const ignore = (): void => {}

const wrap = (logger: pino.Logger): ChildLog => {
  const verb = (name: keyof Log) =>
    logger.isLevelEnabled(name)
      ? (fields: object, message: string) => logger[name](cleanFields(fields), cleanText(message))
      : ignore
  return {
    debug: verb("debug"),
    info: verb("info"),
    warn: verb("warn"),
    error: verb("error"),
    child: fields => wrap(logger.child(cleanFields(fields))),
  }
}
