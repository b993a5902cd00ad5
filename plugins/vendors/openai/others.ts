/** Meters embeddings and moderations: whole answers only. */

import type { Api, Usage, UsageReader, UsageReport } from "../../../core/index.ts"
import { Surprises } from "../common/counts.ts"
import { type Json, list, parse, record } from "../common/json.ts"
import { tokensOf } from "./usage.ts"

type Read = (answer: Json, surprises: Surprises) => UsageReport

class WholeMeter implements UsageReader {
  readonly #surprises = new Surprises()
  readonly #read: Read
  #report: UsageReport = { outputBytes: 0 }

  constructor(read: Read) {
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

/** Vectors are no text: one byte says that something was delivered when a vendor reports no usage. */
const withUsage = (delivered: boolean, usage: Usage | undefined): UsageReport => ({
  outputBytes: delivered ? 1 : 0,
  ...(usage === undefined ? {} : { usage }),
})

const wholeOnly = (read: Read): Api => ({
  usage: () => new WholeMeter(read),
  sign: () => ({ sign: "content" }),
})

export const embeddings = wholeOnly((answer, surprises) =>
  withUsage(list(answer.data).length > 0, tokensOf(answer.usage, surprises)),
)

/** No token counts: the vendor gives moderations away, a catalog may price the request. */
export const moderations = wholeOnly((answer, surprises) => {
  const delivered = list(answer.results).length > 0
  return withUsage(delivered, tokensOf(answer.usage, surprises) ?? (delivered ? { requests: 1 } : undefined))
})
