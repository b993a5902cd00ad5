/** Chunks of vendors with a wire of their own, as their translation makes them. */

import {
  type ChatAnswer,
  type ChatContext,
  type ChatStream,
  isSet,
  list,
  type StreamEvent,
  type Usage,
} from "../../core/index.ts"
import { doneEvent, jsonEvent, usageOf } from "./chunks.ts"

/** The bytes that go to the client for each event of the vendor's stream. */
export class TranslatedChunks {
  readonly #stream: ChatStream
  readonly #context: ChatContext
  /** It waits for the end of the stream: by then it is known whether the vendor told any. */
  #usage: ChatAnswer | undefined
  #last = ""

  constructor(stream: ChatStream, context: ChatContext) {
    this.#stream = stream
    this.#context = context
  }

  /** @throws GatewayError the vendor's fault, when the stream tells one */
  push(event: StreamEvent): string {
    return this.#written(this.#stream.push(event))
  }

  /** @throws GatewayError `upstream_unavailable` (502): the stream ended, the answer did not */
  end(): string {
    this.#last = this.#written(this.#stream.end())
    return this.#last + (this.#usage === undefined ? "" : this.#named(this.#usage)) + doneEvent
  }

  counted(usage: Usage): string {
    const { id, created, includeUsage } = this.#context
    const chunk = { id, object: "chat.completion.chunk", created, ...usageOf(usage) }
    return this.#last + (includeUsage ? this.#named(chunk) : "") + doneEvent
  }

  #written(chunks: readonly ChatAnswer[]): string {
    let written = ""
    for (const chunk of chunks) {
      if (tellsUsage(chunk)) this.#usage = chunk
      else written += this.#named(chunk)
    }
    return written
  }

  #named(chunk: ChatAnswer): string {
    return jsonEvent({ ...chunk, model: this.#context.model.name })
  }
}

const tellsUsage = ({ choices, usage }: ChatAnswer): boolean => list(choices).length === 0 && isSet(usage)
