/** The client's side of a call: the head and the bytes that go out, and the moment when nobody is there any more. */

import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { GatewayError } from "../errors.ts"
import { gather } from "./outbox.ts"
import { askForBody } from "./refuse.ts"

/** Above this the copy would cost more than the second write. */
const oneWriteMax = 16 * 1024
/** A client must take the last bytes within this time, the same in which the longest stream must end. */
const takingMs = 3_600_000

/** Why what is done for a client ends when nobody is there any more. */
export const clientLeft = (): GatewayError => new GatewayError("client_left", "The client left.")

export class ClientSide {
  readonly #response: ServerResponse
  readonly #steady: () => number
  #onGone: (() => void)[] = []
  #onDrain: (() => void) | undefined
  #gone = false
  /** The head is out and the body is chunked: chunks are framed here, because node writes each in four pieces. */
  #framing = false
  #full = false
  bytesOut = 0
  /** Deadline for the client to take the rest of a finished answer: one that stops reading would keep its call for ever. */
  takenBy = Number.POSITIVE_INFINITY

  constructor(response: ServerResponse, steady: () => number) {
    this.#response = response
    this.#steady = steady
    const leave = (): void => {
      if (!response.writableFinished) this.#leave()
    }
    response.on("close", leave)
    const { socket } = response.req
    if (response.socket === null) {
      // Pipelined behind another answer: node tells such a response nothing of its client's end.
      socket.once("close", leave)
      response.once("close", () => socket.off("close", leave))
    }
    response.on("error", () => {}) // a reset shows as close; without a listener it would end the process
  }

  #leave(): void {
    if (this.#gone) return
    this.#gone = true
    for (const listener of this.#onGone) listener()
  }

  get gone(): boolean {
    return this.#gone
  }

  get headSent(): boolean {
    return this.#response.headersSent
  }

  /** The body is wanted now; a client may wait for that with it. */
  askForBody(): void {
    if (!this.#gone) askForBody(this.#response)
  }

  /** Called when the client leaves before the end of the answer; at once when it left already. */
  onGone(listener: () => void): void {
    this.#onGone.push(listener)
    if (this.#gone) listener()
  }

  /** Called whenever a client that was slow has read enough for more. */
  onDrain(listener: () => void): void {
    if (this.#onDrain === undefined) this.#response.on("drain", () => this.#onDrain?.())
    this.#onDrain = listener
  }

  /** @param fields name, value, name, value ... */
  head(status: number, fields: string[]): void {
    if (!this.#gone) this.#response.writeHead(status, fields)
  }

  /** Sends the head now, before any byte of the body. */
  flush(): void {
    if (!this.#gone) this.#response.flushHeaders()
  }

  /** False when the client should be given time (`onDrain`). */
  write(chunk: Buffer | string): boolean {
    if (this.#gone) return true
    const bytes = typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.length
    this.bytesOut += bytes
    const { socket } = this.#response
    if (socket === null) return this.#response.write(chunk) // pipelined behind another answer
    gather(socket)
    if (this.#framing && bytes > 0 && bytes <= oneWriteMax && socket.writable) return this.#send(socket, chunk, bytes)
    const isReady = this.#response.write(chunk)
    this.#framing = this.#response.chunkedEncoding && this.#response.req.method !== "HEAD"
    return isReady
  }

  #send(socket: Socket, chunk: Buffer | string, bytes: number): boolean {
    if (socket.write(framed(chunk, bytes))) return true
    if (!this.#full) socket.once("drain", () => this.#drained(socket))
    this.#full = true
    return false
  }

  #drained(socket: Socket): void {
    this.#full = false
    if (this.#response.socket === socket) this.#onDrain?.() // else the socket serves the next answer by now
  }

  /** Resolves when the last byte is handed over, or the client is gone. */
  end(chunk?: Buffer | string): Promise<void> {
    if (this.#gone) return Promise.resolve()
    this.takenBy = this.#steady() + takingMs
    if (chunk !== undefined) this.bytesOut += typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.length
    return new Promise(resolve => {
      this.#onGone.push(resolve)
      const done = (): void => {
        // Node calls an answer finished whose connection was closed under its last bytes.
        if (this.#response.req.socket.destroyed) this.#leave()
        resolve()
      }
      // As a latin1 string the same bytes share one write with the head; as a buffer they would be a second one.
      if (Buffer.isBuffer(chunk) && chunk.length <= oneWriteMax)
        this.#response.end(chunk.toString("latin1"), "latin1", done)
      else this.#response.end(chunk, done)
    })
  }

  /** Ends a cut answer as what it is: the client must not take it for whole. */
  cut(): void {
    this.#response.destroy()
  }
}

/** One chunk of the chunked transfer coding (RFC 9112 section 7.1). */
const framed = (chunk: Buffer | string, bytes: number): Buffer => {
  const size = bytes.toString(16)
  const body = size.length + 2
  const frame = Buffer.allocUnsafe(body + bytes + 2)
  frame.write(`${size}\r\n`, "latin1")
  if (typeof chunk === "string") frame.write(chunk, body)
  else chunk.copy(frame, body)
  frame.write("\r\n", body + bytes, "latin1")
  return frame
}
