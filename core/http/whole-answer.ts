/** A whole answer: held until it is billed, so that its price stands in its head; one too large to hold goes out at once. */

import type { GatewayError } from "../errors.ts"
import { microsPerCredit } from "../offer.ts"
import type { Answer } from "./answer.ts"
import type { AttemptRun } from "./attempt.ts"
import { pushFields } from "./fields.ts"

/** Above this a relayed answer is not held. */
const heldBytesMax = 4 * 1024 * 1024

export class WholeAnswer implements Answer {
  sent = false
  readonly #run: AttemptRun
  #held: Buffer[] = []
  #bytes = 0

  constructor(run: AttemptRun) {
    this.#run = run
  }

  data(chunk: Buffer): void {
    if (this.#run.parts.draft.verb !== "relay") return // the meter keeps it
    if (this.sent) return this.#write(chunk)
    this.#held.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > heldBytesMax) this.#passOn()
  }

  async end(body: Buffer): Promise<void> {
    const { call, draft } = this.#run.parts
    if (draft.verb === "stream") return this.#insteadOfStream(body)
    const answer = draft.verb === "send" ? draft.answer(body) : undefined
    await this.#run.saw()
    const billed = await this.#run.bill("delivered")
    if (this.sent) await call.client.end()
    else {
      const out = answer === undefined ? this.#takeHeld() : answer.body
      const fields = call.headFields()
      if (billed.micros !== undefined) fields.push("x-credits-charged", String(billed.micros / microsPerCredit))
      this.#run.vendorFields(fields, answer === undefined)
      if (answer !== undefined) pushFields(fields, answer.headers ?? { "content-type": "application/json" })
      fields.push("content-length", String(Buffer.byteLength(out)))
      call.client.head(this.#run.status, fields)
      await call.client.end(out)
    }
    this.#run.finish(billed, call.client.gone ? "abandoned" : "delivered")
  }

  /** Some vendors refuse a stream inside a 200, in JSON; whatever else comes cannot be translated. */
  #insteadOfStream(data: Buffer): void {
    const sign = this.#run.parts.api.sign({ data })
    if (sign.sign !== "fault") throw new Error("a stream was asked for, a whole answer came")
    this.#run.failed({ fault: sign.fault })
  }

  async cut(_error: GatewayError): Promise<void> {
    this.#run.parts.call.client.cut() // the client must see that bytes are missing
  }

  #passOn(): void {
    const { call } = this.#run.parts
    this.sent = true
    this.#run.waited()
    const fields = call.headFields()
    this.#run.vendorFields(fields, true)
    call.client.head(this.#run.status, fields)
    call.client.onDrain(() => this.#run.upstream?.resume())
    for (const chunk of this.#held) this.#write(chunk)
    this.#held = []
  }

  #write(chunk: Buffer): void {
    if (!this.#run.parts.call.client.write(chunk)) this.#run.upstream?.pause()
  }

  #takeHeld(): Buffer {
    const held = this.#held
    this.#held = []
    return held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held)
  }
}
