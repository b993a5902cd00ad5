/** A stream of answers as chunks of the hub: what is new in each part, in order; reason and usage once, at the end. */

import {
  type ChatAnswer,
  type ChatContext,
  type ChatStream,
  endedEarly,
  type JsonObject,
  type StreamEvent,
} from "../../../../core/index.ts"
import { headOf } from "../../common/answers.ts"
import { isDone, list, record } from "../../common/json.ts"
import {
  answersIn,
  type Candidate,
  candidatesOf,
  explained,
  type Finish,
  finishReason,
  type Piece,
  silent,
} from "./candidates.ts"
import { PartialArguments } from "./partial-arguments.ts"
import { usageOf } from "./tokens.ts"
import { argumentsText, type CallContext, callContext, toolCall } from "./tool-calls.ts"
import { imageOf } from "./whole.ts"

export class GenerateStream implements ChatStream {
  readonly #context: ChatContext
  readonly #head: ReturnType<typeof headOf>
  readonly #calls: CallContext
  readonly #choices = new Map<number, Choice>()
  #usage: JsonObject | undefined

  constructor(context: ChatContext, memo: unknown) {
    this.#context = context
    this.#head = headOf(context, "chat.completion.chunk")
    this.#calls = callContext(context, memo)
  }

  /** @throws GatewayError the vendor's fault, when the stream tells one */
  push({ data }: StreamEvent): readonly ChatAnswer[] {
    if (isDone(data)) return []
    return answersIn(data).flatMap(answer => {
      // Cumulative, and right in the last chunk only; some chunks have no counts.
      this.#usage = usageOf(answer.usageMetadata) ?? this.#usage
      return candidatesOf(answer).flatMap(candidate => this.#take(candidate))
    })
  }

  /** @throws GatewayError `upstream_unavailable` (502): the stream ended, the answer did not */
  end(): readonly ChatAnswer[] {
    const choices = [...this.#choices]
    if (choices.length === 0 || choices.some(([, { finish }]) => finish === undefined)) throw endedEarly()
    const ends = choices.flatMap(([index, choice]) => choice.end().map(one => this.#chunk(index, one)))
    const { includeUsage } = this.#context
    return includeUsage && this.#usage !== undefined ? [...ends, this.#usageChunk(this.#usage)] : ends
  }

  #take(candidate: Candidate): readonly ChatAnswer[] {
    const { index } = candidate
    let choice = this.#choices.get(index)
    const first: Delta[] = choice === undefined ? [{ delta: { role: "assistant", content: "" } }] : []
    if (choice === undefined) {
      choice = new Choice(this.#calls)
      this.#choices.set(index, choice)
    }
    return [...first, ...choice.take(candidate)].map(one => this.#chunk(index, one))
  }

  #chunk(index: number, { delta, logprobs, reason }: Delta): ChatAnswer {
    const choice = { index, delta, logprobs: logprobs ?? null, finish_reason: reason ?? null }
    return { ...this.#head, choices: [choice], ...(this.#context.includeUsage ? { usage: null } : {}) }
  }

  #usageChunk(usage: JsonObject): ChatAnswer {
    return { ...this.#head, choices: [], usage }
  }
}

interface Delta {
  readonly delta: JsonObject
  readonly logprobs?: JsonObject
  readonly reason?: string
}

/** A call whose arguments still arrive. */
interface OpenCall {
  readonly index: number
  readonly written: PartialArguments
}

/** One candidate over the whole stream. */
class Choice {
  readonly #context: CallContext
  #calls = 0
  #open: OpenCall | undefined
  #hasSpoken = false
  finish: Finish | undefined

  constructor(context: CallContext) {
    this.#context = context
  }

  take({ pieces, finish, logprobs }: Candidate): readonly Delta[] {
    const deltas = pieces.flatMap(piece => this.#deltas(piece))
    // Older models say STOP in every chunk: the last word counts.
    this.finish = finish ?? this.finish
    if (logprobs === undefined) return deltas
    const [first, ...rest] = deltas.length === 0 ? [{ delta: {} }] : deltas
    return [{ ...first!, logprobs }, ...rest]
  }

  end(): readonly Delta[] {
    const closing = this.#close()
    const finish = this.finish ?? silent
    const said = this.#hasSpoken || finish.explanation === undefined ? [] : [{ delta: explained(finish) }]
    const reason = finishReason(finish, this.#calls > 0)
    return [...closing, ...said, { delta: {}, reason }]
  }

  #deltas(piece: Piece): readonly Delta[] {
    if (piece.kind === "thought") return [{ delta: { reasoning_content: piece.text } }]
    if (piece.kind === "call") return this.#call(piece.call, piece.signature)
    this.#hasSpoken = true
    return [{ delta: piece.kind === "text" ? { content: piece.text } : { images: [imageOf(piece.text)] } }]
  }

  /** A name begins a call. Without one, the part goes on with the open call, or closes it. */
  #call(call: JsonObject, signature: string | undefined): readonly Delta[] {
    const isNext = call.name === undefined && call.args === undefined
    if (isNext && this.#open !== undefined) return this.#goOn(call)
    if (isNext && call.partialArgs === undefined) return []
    return [...this.#close(), ...this.#begin(call, signature)]
  }

  #begin(call: JsonObject, signature: string | undefined): readonly Delta[] {
    const isOpen = call.willContinue === true
    const index = this.#calls
    const written = isOpen ? "" : argumentsText(call)
    const begun = { delta: { tool_calls: [{ index, ...toolCall(call, signature, written, this.#context) }] } }
    this.#calls++
    this.#hasSpoken = true
    if (!isOpen) return [begun]
    this.#open = { index, written: new PartialArguments(record(call.args)) }
    return [begun, ...this.#goOn(call)]
  }

  #goOn(call: JsonObject): readonly Delta[] {
    for (const piece of list(call.partialArgs)) this.#open?.written.add(record(piece))
    return call.willContinue === true ? [] : this.#close()
  }

  /** Pieces name their places and may come in any order: the arguments go out as one text, when they are complete. */
  #close(): readonly Delta[] {
    if (this.#open === undefined) return []
    const { index, written } = this.#open
    this.#open = undefined
    return [{ delta: { tool_calls: [{ index, function: { arguments: String(written) } }] } }]
  }
}
