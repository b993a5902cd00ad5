/** Meters generateContent and its stream: every chunk carries counts, the last ones are right. */

import type { EventSign, StreamEvent, Usage, UsageReader, UsageReport } from "../../../core/index.ts"
import { Surprises } from "../common/counts.ts"
import { type JsonObject, list, parse, record, text, textBytes } from "../common/json.ts"
import { eventFault } from "./faults.ts"
import { tokensOf } from "./usage.ts"

/** Fields of value 0 are left out, and some chunks name a traffic type only: any one of these makes a report. */
const countFields = ["totalTokenCount", "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"]

export class GenerateMeter implements UsageReader {
  readonly #surprises = new Surprises()
  /** Judged once, at the end: every chunk carries the counts of all before it. */
  #reported: JsonObject | undefined
  #outputBytes = 0
  #searches = 0

  /** A stream that was answered whole is a JSON array of chunks. */
  whole(body: Buffer): void {
    const parsed = this.#parse(body)
    for (const answer of Array.isArray(parsed) ? parsed : [parsed]) this.#read(record(answer))
  }

  event(event: StreamEvent): void {
    this.#read(record(this.#parse(event.data)))
  }

  report(): UsageReport {
    const usage = this.#tokens()
    const serviceTier = text(this.#reported?.serviceTier)
    return {
      outputBytes: this.#outputBytes,
      ...(usage === undefined ? {} : { usage }),
      ...(serviceTier === undefined ? {} : { serviceTier }),
    }
  }

  get surprises(): readonly string[] {
    this.#tokens()
    return this.#surprises.all
  }

  #tokens(): Usage | undefined {
    const tokens = this.#reported && tokensOf(this.#reported, this.#surprises)
    return tokens === undefined || this.#searches === 0 ? tokens : { ...tokens, web_search: this.#searches }
  }

  #read(answer: JsonObject): void {
    for (const candidate of list(answer.candidates)) this.#outputBytes += candidateBytes(record(candidate))
    this.#searches = Math.max(this.#searches, searchesOf(answer))
    const reported = record(answer.usageMetadata)
    if (countFields.some(field => reported[field] !== undefined)) this.#reported = reported
  }

  #parse(data: Buffer): unknown {
    const parsed = parse(data)
    if (parsed === undefined) this.#surprises.note("bad_json")
    return parsed
  }
}

/** Grounding is billed beside the tokens: by the query, up to generation 2 by the answer. */
const searchesOf = (answer: JsonObject): number => {
  const queries = list(answer.candidates).flatMap(candidate =>
    list(record(record(candidate).groundingMetadata).webSearchQueries),
  )
  const byAnswer = /^gemini-[12]\b/.test(text(answer.modelVersion) ?? "")
  return byAnswer ? Math.min(1, queries.length) : queries.length
}

const partsOf = (candidate: JsonObject): readonly JsonObject[] => list(record(candidate.content).parts).map(record)

const candidateBytes = (candidate: JsonObject): number =>
  partsOf(candidate).reduce((bytes, part) => bytes + partBytes(part), 0)

const partBytes = (part: JsonObject): number => {
  const call = record(part.functionCall)
  const written = call.args ?? call.partialArgs
  return (
    textBytes(part.text) +
    (written === undefined ? 0 : textBytes(JSON.stringify(written))) +
    textBytes(record(part.executableCode).code)
  )
}

export const generateSign = (event: StreamEvent): EventSign => {
  const parsed = parse(event.data)
  const answer = record(parsed)
  // An error may stand in an array of its own.
  const last = record(Array.isArray(parsed) ? parsed.at(-1) : parsed)
  if (last.error !== undefined && last.error !== null) return { sign: "fault", fault: eventFault(last) }
  const isContent = list(answer.candidates).map(record).some(hasContent) || answer.promptFeedback !== undefined
  return { sign: isContent || answer !== parsed ? "content" : "neutral" }
}

const hasContent = (candidate: JsonObject): boolean =>
  text(candidate.finishReason) !== undefined || partsOf(candidate).some(part => candidateHolds(part))

/** A first chunk may hold an empty text only. */
const candidateHolds = (part: JsonObject): boolean =>
  Object.keys(part).some(key => key !== "text" && key !== "thought") || part.text !== ""
