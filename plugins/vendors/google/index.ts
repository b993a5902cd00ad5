/** The generate-content wire. */

import type { Adapter, Api, UsageReader, UsageReport } from "../../../core/index.ts"
import { Surprises } from "../common/counts.ts"
import { list, parse, record } from "../common/json.ts"
import { googleDialect } from "./dialect.ts"
import { fault } from "./faults.ts"
import { GenerateMeter, generateSign } from "./meter.ts"
import { tokensOf } from "./usage.ts"

/** The API takes both spellings of its names. */
const parts = {
  keys: { inlineData: "image", inline_data: "image", fileData: "file", file_data: "file" },
} as const

const generate: Api = { usage: () => new GenerateMeter(), sign: generateSign, parts }

/** Free of charge at the vendor. */
const count: Api = {
  usage: () => ({ whole() {}, event() {}, report: () => ({ outputBytes: 0 }) }),
  sign: () => ({ sign: "content" }),
  metered: false,
}

/** Most answers have vectors and no counts: one byte says that something was delivered, to be billed as estimated. */
class EmbedMeter implements UsageReader {
  readonly #surprises = new Surprises()
  #report: UsageReport = { outputBytes: 0 }

  whole(body: Buffer): void {
    const parsed = parse(body)
    if (parsed === undefined) this.#surprises.note("bad_json")
    const answer = record(parsed)
    const usage = tokensOf(answer.usageMetadata, this.#surprises)
    const delivered = answer.embedding !== undefined || list(answer.embeddings).length > 0
    this.#report = { outputBytes: delivered ? 1 : 0, ...(usage === undefined ? {} : { usage }) }
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

const embed: Api = { usage: () => new EmbedMeter(), sign: () => ({ sign: "content" }), parts }

export default {
  name: "google",
  dialect: googleDialect,
  fields: {
    toVendor: ["content-type", "accept"],
    toClient: ["content-type", "retry-after", "x-gemini-service-tier"],
    query: ["alt"],
  },
  authorise: secret => ({ "x-goog-api-key": secret.reveal() }),
  apis: { generate, count, embed },
  fault,
} satisfies Adapter
