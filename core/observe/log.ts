/** The log: one JSON line per event, cleaned before it is written. The owner of pino. */

import { pino } from "pino"
import type { Log } from "../plugin.ts"
import { cleanFields, cleanText } from "./clean.ts"
import { createLineWriter, type LineWriter } from "./lines.ts"

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

let output: LineWriter | undefined

/** A write per line would cost more than the line. One for the process: its last lines are written when it ends. */
const standardOutput = (): LineWriter => {
  if (output !== undefined) return output
  output = createLineWriter(1, { together: 8 * 1024, most: 16 * 2 ** 20, everyMs: 200 })
  process.once("exit", output.flush)
  return output
}

export const createLog = ({ level, destination }: LogOptions): ChildLog =>
  wrap(pino({ level, base: null, formatters: { level: label => ({ level: label }) } }, destination ?? standardOutput()))

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
