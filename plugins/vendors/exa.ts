/** Exa: web search, page contents and answers with sources. Relayed byte for byte, billed by the cost that it tells. */

import {
  type Adapter,
  type Api,
  afterDash,
  type Dialect,
  type EventSign,
  type GatewayError,
  type StreamEvent,
  type Usage,
  type UsageReader,
  type UsageReport,
} from "../../core/index.ts"
import { Surprises } from "./common/counts.ts"
import { isDone, type JsonObject, list, parse, record, textBytes } from "./common/json.ts"
import { messageFaults } from "./common/message-faults.ts"

/** No call costs more; a larger number is a fault of the vendor, not a bill. */
const dollarsMax = 100

class CostMeter implements UsageReader {
  readonly #surprises = new Surprises()
  #dollars: number | undefined
  #outputBytes = 0
  #whole = false

  whole(body: Buffer): void {
    const answer = this.#read(body)
    this.#whole = Array.isArray(answer.results) || answer.answer !== undefined
    // Results are no text of a model: one byte says that something was delivered.
    this.#outputBytes = this.#whole ? Math.max(1, textBytes(answer.answer)) : 0
  }

  event({ data }: StreamEvent): void {
    if (isDone(data)) return
    const chunk = this.#read(data)
    this.#outputBytes += contentBytes(chunk)
  }

  /** An answer that does not tell its cost is one request; of a stream that does not, what was seen is counted. */
  report(): UsageReport {
    const usage = this.#usage()
    return { outputBytes: this.#outputBytes, ...(usage === undefined ? {} : { usage }) }
  }

  get surprises(): readonly string[] {
    return this.#surprises.all
  }

  #usage(): Usage | undefined {
    if (this.#dollars !== undefined) return { requests: 1, cost_dollars: this.#dollars }
    return this.#whole ? { requests: 1 } : undefined
  }

  #read(bytes: Buffer): JsonObject {
    const parsed = parse(bytes)
    if (parsed === undefined) this.#surprises.note("bad_json")
    const answer = record(parsed)
    const { total } = record(answer.costDollars)
    if (typeof total === "number" && total >= 0 && total <= dollarsMax) this.#dollars = total
    else if (total !== undefined && total !== null) this.#surprises.note("bad_count")
    return answer
  }
}

const contentBytes = (chunk: JsonObject): number =>
  list(chunk.choices).reduce<number>((bytes, choice) => bytes + textBytes(record(record(choice).delta).content), 0) +
  (list(chunk.citations).length > 0 || list(chunk.results).length > 0 ? 1 : 0)

const fault = messageFaults({
  words: {
    INVALID_API_KEY: "account",
    NO_MORE_CREDITS: "account",
    API_KEY_BUDGET_EXCEEDED: "account",
    FEATURE_DISABLED: "account",
  },
})

const sign = ({ data }: StreamEvent): EventSign => {
  const chunk = record(isDone(data) ? undefined : parse(data))
  if (chunk.error !== undefined && chunk.error !== null) return { sign: "fault", fault: fault(502, data, {}) }
  return { sign: contentBytes(chunk) > 0 || chunk.costDollars !== undefined ? "content" : "neutral" }
}

const api: Api = { usage: () => new CostMeter(), sign }

/** The tag by which this vendor's clients know an error. */
const tagOf = ({ kind }: GatewayError): string => {
  if (kind.status === 401) return "INVALID_API_KEY"
  if (kind.status === 402) return "NO_MORE_CREDITS"
  return kind.status < 500 ? "INVALID_REQUEST" : "INTERNAL_ERROR"
}

const render: Dialect["render"] = (error, requestId) => ({
  detail: error.detail,
  requestId,
  error: afterDash(error.message),
  tag: tagOf(error),
})

export default {
  name: "exa",
  dialect: {
    name: "exa",
    render,
    streamError: (error, requestId) => `data: ${JSON.stringify(render(error, requestId))}\n\n`,
  },
  fields: { toVendor: ["content-type", "accept"], toClient: ["content-type", "retry-after"], query: [] },
  authorise: secret => ({ "x-api-key": secret.reveal() }),
  apis: { search: api, contents: api, answer: api },
  fault,
} satisfies Adapter
