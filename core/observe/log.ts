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

export const createLog = ({ level, destination }: LogOptions): ChildLog => {
  const formatters = { level: (label: string) => ({ level: label }) }
  const logger = pino({ level, base: null, formatters }, destination ?? standardOutput())
  return wrap(Object.assign(logger, { [pino.symbols.asJsonSym]: asLine })) // children inherit it
}

/** What pino keeps ready for a line: `{"level":...` by level, and a child's own fields. */
interface Prepared {
  readonly [pino.symbols.lsCacheSym]: Readonly<Record<number, string>>
  readonly [pino.symbols.chindingsSym]: string
}

/**
 * Cleaned fields are plain data: one native pass writes them, where pino's own way, made for any value and with
 * serializers for each name, joins some strings for every field.
 */
function asLine(this: Prepared, fields: object, message: string, level: number, time: string): string {
  const data = JSON.stringify(fields)
  const body = data === "{}" ? "" : `,${data.slice(1, -1)}`
  const head = `${this[pino.symbols.lsCacheSym][level]}${time}${this[pino.symbols.chindingsSym]}`
  return `${head}${body},"msg":${JSON.stringify(message)}}\n`
}

const ignore = (): void => {}

/** A plugin without types may give the message alone, as other loggers take it: no line of the log fails a call. */
const alone = (given: unknown): [object, string] =>
  typeof given === "object" && given !== null ? [cleanFields(given), ""] : [{}, cleanText(String(given))]

const wrap = (logger: pino.Logger): ChildLog => {
  const verb = (name: keyof Log) =>
    logger.isLevelEnabled(name)
      ? (fields: object, message?: string) =>
          message === undefined ? logger[name](...alone(fields)) : logger[name](cleanFields(fields), cleanText(message))
      : ignore
  return {
    debug: verb("debug"),
    info: verb("info"),
    warn: verb("warn"),
    error: verb("error"),
    child: fields => wrap(logger.child(cleanFields(fields))),
  }
}
