/**
 * Models that want the reasoning of an assistant turn back beside its tool calls (rule `reasoning_back`) refuse a turn
 * without it, and most chat clients drop it. So it is kept, and put back where it is missing.
 */

import { createHash } from "node:crypto"
import { type Call, type ChatRequest, type Host, isObject, list, record, text } from "../../core/index.ts"

/** How long an agent may pause between a tool call and its result. */
const lifeMs = 6 * 3_600_000
/** UTF-8 bytes. Anything larger is not kept: the vendor then reports what is missing. */
const keptBytesMax = 64 * 1024
/** The latest turns with tools that are looked for. */
const turnsMax = 512

/** Vendors disagree about the field's name. */
const names = ["reasoning_content", "reasoning"] as const

type Message = Readonly<Record<string, unknown>>

interface Turn {
  /** Where it stands in the messages. */
  readonly at: number
  readonly key: string
}

/** What is kept of one call's conversation. */
export class Reasoning {
  readonly #host: Pick<Host, "store" | "log">
  readonly #call: Pick<Call, "id" | "get">

  constructor(host: Pick<Host, "store" | "log">, call: Pick<Call, "id" | "get">) {
    this.#host = host
    this.#call = call
  }

  /** The request with the reasoning that its client did not send back. */
  async putBack(request: ChatRequest): Promise<ChatRequest> {
    const turns = this.#bareTurns(request.messages)
    if (turns.length === 0) return request
    const kept = await Promise.all(turns.map(({ key }) => this.#host.store.records.get(key)))
    const messages = [...request.messages]
    for (const [index, { at }] of turns.entries()) {
      const value = kept[index]
      if (value !== undefined) messages[at] = { ...messages[at], ...(JSON.parse(value) as Message) }
    }
    return { ...request, messages }
  }

  /** Reads one answer to this request. */
  log({ messages }: ChatRequest): ReasoningLog {
    const before = createHash("sha256")
    for (const message of messages) addTo(before, message)
    return new ReasoningLog((id, kept) => {
      this.#host.store.records.put(this.#keyOf(before, id), JSON.stringify(kept), lifeMs).catch(cause => {
        this.#host.log.warn({ id: this.#call.id, cause }, "the reasoning of a tool call could not be kept")
      })
    })
  }

  #bareTurns(messages: ChatRequest["messages"]): readonly Turn[] {
    const before = createHash("sha256")
    const turns: Turn[] = []
    for (const [at, message] of messages.entries()) {
      const id = isBare(message) ? firstCall(message) : undefined
      if (id !== undefined) turns.push({ at, key: this.#keyOf(before, id) })
      addTo(before, message)
    }
    return turns.slice(-turnsMax)
  }

  /** Ids of calls come again in other turns and conversations: what was said before belongs to the key. */
  #keyOf(before: ReturnType<typeof createHash>, id: string): string {
    const { organisation, member } = this.#call.get("principal")
    return `reasoning:${organisation}/${member}:${before.copy().update(id).digest("base64url")}`
  }
}

/** What the user and the tools said; how an assistant's turn comes back is its client's affair. */
const addTo = (hash: ReturnType<typeof createHash>, { role, content, tool_call_id }: Message): void => {
  if (role === "user" || role === "tool") hash.update(JSON.stringify([role, content, tool_call_id]))
}

const isBare = (message: Message): boolean =>
  message.role === "assistant" && names.every(name => text(message[name]) === undefined)

const firstCall = ({ tool_calls }: Message): string | undefined => text(record(list(tool_calls)[0]).id)

const telling = ['"reasoning', '"tool_calls"'].map(word => Buffer.from(word))

/** Gathers the reasoning of an answer, whole or in chunks, and keeps it when its first tool call is known. */
export class ReasoningLog {
  readonly #keep: (id: string, kept: Message) => void
  #name: (typeof names)[number] = "reasoning_content"
  #words = ""
  #bytes = 0
  #done = false

  constructor(keep: (id: string, kept: Message) => void) {
    this.#keep = keep
  }

  /** A chunk as the vendor wrote it; what is no JSON says nothing. */
  chunk(data: Buffer): void {
    if (this.#done || !telling.some(word => data.includes(word))) return
    try {
      this.answer(JSON.parse(data.toString()))
    } catch {
      // The stream's own reader says what is wrong with it.
    }
  }

  /** A chunk, or a whole answer. Of several choices the client goes on with one, and nobody knows which: the first is read. */
  answer(answer: unknown): void {
    const choices = list(record(answer).choices).map(record)
    const choice = choices.find(({ index = 0 }) => index === 0)
    const said = choice?.delta ?? choice?.message
    if (!this.#done && isObject(said)) this.#read(said)
  }

  #read(said: Message): void {
    this.#name = names.find(name => text(said[name]) !== undefined) ?? this.#name
    const more = text(said[this.#name]) ?? ""
    this.#words += more
    this.#bytes += Buffer.byteLength(more)
    const id = firstCall(said)
    this.#done = id !== undefined || this.#bytes > keptBytesMax
    if (id !== undefined && this.#bytes > 0 && this.#bytes <= keptBytesMax)
      this.#keep(id, { [this.#name]: this.#words })
    if (this.#done) this.#words = ""
  }
}
