/** Error answers, and connections that end because their request was not read to its end. */

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import type { Dialect } from "../adapter.ts"
import type { GatewayError } from "../errors.ts"
import { plain } from "../kit/dialects.ts"
import { pushFields } from "./fields.ts"

/** A client that still sends is read (and forgotten) this long, so that it can read its answer before the socket ends. */
const linger = { ms: 2_000, bytes: 64 * 1024 * 1024 }

export const refuse = (
  request: IncomingMessage,
  response: ServerResponse,
  error: GatewayError,
  dialect: Dialect,
  requestId: string,
  fields: string[],
): void => {
  if (response.destroyed) return
  const text = bodyOf(error, dialect, requestId)
  fields.push("content-type", error.isText ? "text/plain; charset=utf-8" : "application/json")
  pushFields(fields, error.headers)
  fields.push("content-length", String(Buffer.byteLength(text)))
  if (request.complete || hasNoBody(request)) {
    response.writeHead(error.kind.status, fields)
    response.end(text)
    return
  }
  fields.push("connection", "close") // the rest of the body must never be read as a request
  ending.add(request.socket)
  response.writeHead(error.kind.status, fields)
  response.write(text)
  readOff(request, () => response.end())
}

/** Connections that end with the answer under way. */
const ending = new WeakSet<object>()

/** Answers to come whose client may wait to be told to send its body, and was not told yet; by connection. */
const waiting = new WeakMap<object, ServerResponse>()

/** The answer to come is the last of its connection: what follows an ambiguous request may be meant otherwise, and a gateway that stops takes no more. */
export const endsConnection = (request: IncomingMessage, response: ServerResponse): void => {
  response.shouldKeepAlive = false
  ending.add(request.socket)
}

/**
 * Node goes on parsing behind the last request of a connection: that call's answer would reach nobody and still be paid
 * for. A request whose body may still be refused counts as the last one as soon as another follows it.
 */
export const comesTooLate = (request: IncomingMessage, { shouldKeepAlive }: ServerResponse): boolean => {
  const { socket } = request
  const undecided = waiting.get(socket)
  if (undecided !== undefined) endsConnection(request, undecided)
  if (ending.has(socket)) return true
  if (!shouldKeepAlive) ending.add(socket)
  return false
}

/** A socket of node's server: `_httpMessage` is the answer under way. */
type Served = Duplex & { readonly _httpMessage?: ServerResponse | null; readonly bytesRead?: number }

/** What wants the whole socket does not get it while an earlier request is unanswered; that answer is the last then. */
export const answersFirst = (request: IncomingMessage, socket: Served): boolean => {
  const answer = socket._httpMessage
  if (answer === undefined || answer === null) return false
  endsConnection(request, answer)
  answer.once("close", () => socket.end(() => socket.destroy())) // its head may be out already, and promise more
  socket.resume() // node reads no longer: what else comes is dropped
  return true
}

/**
 * A client that expects `100 Continue` is told to go on when its body is wanted (RFC 9110 section 10.1.1). An answer
 * that comes before ends its connection (node sees to that): nobody knows whether the body follows.
 */
export const expectsContinue = (response: ServerResponse): void => void waiting.set(response.req.socket, response)

/** Nothing is sent to a client that does not wait, or that has its answer. */
export const askForBody = (response: ServerResponse): void => {
  const { socket } = response.req
  if (waiting.get(socket) !== response || response.headersSent) return
  waiting.delete(socket)
  response.writeContinue()
}

const bodyOf = (error: GatewayError, dialect: Dialect, requestId: string): string =>
  error.isText ? error.message : JSON.stringify(dialect.render(error, requestId))

const hasNoBody = (request: IncomingMessage): boolean =>
  request.headers["transfer-encoding"] === undefined && (request.headers["content-length"] ?? "0") === "0"

/** Answered requests that are still read; each leaves within `linger`. */
const uploads = new Set<Promise<void>>()

/** Resolves when every client that sends on has had the time to read its answer. */
export const lastUploads = async (): Promise<void> => {
  while (uploads.size > 0) await Promise.all(uploads)
}

const readOff = (request: IncomingMessage, done: () => void): void => {
  const { promise, resolve } = Promise.withResolvers<void>()
  uploads.add(promise)
  let bytes = 0
  const finish = (): void => {
    if (!uploads.delete(promise)) return
    clearTimeout(timer)
    request.off("data", count)
    done()
    resolve()
  }
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > linger.bytes) finish()
  }
  const timer = setTimeout(finish, linger.ms)
  request.on("data", count)
  request.once("end", finish)
  request.once("error", finish)
  request.once("close", finish)
  request.resume()
}

/**
 * Ends a bare socket whose last byte is handed over: its client has a time to read it and to end its own side. Node
 * looks after no such socket, and a stop waits for each.
 */
export const endSocket = (socket: Duplex): void => {
  const timer = setTimeout(() => socket.destroy(), linger.ms)
  socket.once("close", () => clearTimeout(timer))
  socket.end()
  socket.resume() // what still comes is dropped; unread, it would turn the end into a reset
}

/**
 * An answer on a bare socket.
 * @returns whether it is one to bytes that no call tells of: a connection that is opened for later, and is late, said none
 */
export const refuseSocket = (socket: Served, error: GatewayError, requestId: string, fields: string[]): boolean => {
  if (!socket.writable) {
    socket.destroy()
    return false
  }
  const text = JSON.stringify(plain.render(error, requestId))
  const { status } = error.kind
  const answer = socket._httpMessage ?? undefined
  socket.on("error", () => {}) // the client may be gone already
  setTimeout(() => socket.destroy(), linger.ms).unref() // one that keeps sending must not keep the socket
  // Bytes in the middle of another answer would be read as its body (node's own handler asks the same): it just ends.
  if (answer?.headersSent === true) {
    socket.end(() => socket.destroy())
    return false
  }
  const length = String(Buffer.byteLength(text))
  const all = [...fields, "content-type", "application/json", "content-length", length, "connection", "close"]
  const lines = all.map((part, at) => part + (at % 2 === 0 ? ": " : "\r\n"))
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}\r\n${lines.join("")}\r\n${text}`)
  return answer === undefined && socket.bytesRead !== 0
}
