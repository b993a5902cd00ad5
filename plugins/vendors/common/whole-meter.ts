/** Meters answers that come whole (vectors, scores, verdicts), and APIs that are free. */

import type { Api, Usage, UsageReader, UsageReport } from "../../../core/index.ts"
import { compact, count, Surprises } from "./counts.ts"
import { type JsonObject, parse, record } from "./json.ts"

/** Reads one parsed answer; whatever is not there is absent. */
export type ReadWhole = (answer: JsonObject, surprises: Surprises) => UsageReport

class WholeMeter implements UsageReader {
  readonly #surprises = new Surprises()
  readonly #read: ReadWhole
  #report: UsageReport = { outputBytes: 0 }

  constructor(read: ReadWhole) {
    this.#read = read
  }

  whole(body: Buffer): void {
    const parsed = parse(body)
    if (parsed === undefined) this.#surprises.note("bad_json")
    this.#report = this.#read(record(parsed), this.#surprises)
  }

  event(): void {
    this.#surprises.note("unknown_event")
  }

  report(): UsageReport {
    return this.#report
  }

  get surprises(): readonly string[] {
    return this.#surprises.all
  }
}

/** An API without streams. */
export const wholeOnly = (read: ReadWhole): Api => ({
  usage: () => new WholeMeter(read),
  sign: () => ({ sign: "content" }),
})

/** What the vendor gives away, such as token counts: nothing is metered. */
export const unmetered: Api = {
  usage: () => ({ whole() {}, event() {}, report: () => ({ outputBytes: 0 }) }),
  sign: () => ({ sign: "content" }),
  metered: false,
}

/** Vectors and scores are no text: one byte says that something was delivered when a vendor reports no usage. */
export const withUsage = (delivered: boolean, usage: Usage | undefined): UsageReport => ({
  outputBytes: delivered ? 1 : 0,
  wordless: true,
  ...(usage === undefined ? {} : { usage }),
})

/** One count of tokens, all of them input; `undefined` when there is none. */
export const inputOf = (tokens: unknown, surprises: Surprises): Usage | undefined => {
  const input = count(tokens, surprises)
  return input === undefined ? undefined : compact({ input })
}
