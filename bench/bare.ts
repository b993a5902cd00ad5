/**
 * The measure of everything: the least that a relay in Node can do. `node:http` in front, undici dispatch behind, bytes
 * in between; no key, no limit, no meter. `node bench/bare.ts <port> <origin of the upstream>`.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Pool } from "undici"

const [port, origin] = process.argv.slice(2)
const pool = new Pool(origin!, { connections: 4096, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })

/** Those of the bench's upstream that a client needs. */
const relayed = ["content-type", "content-length", "request-id"]

const relay = (request: IncomingMessage, response: ServerResponse, body: Buffer): void => {
  const headers = { "content-type": "application/json", "x-api-key": "bench", "anthropic-version": "2023-06-01" }
  pool.dispatch(
    { method: "POST", path: request.url!, headers, body },
    {
      onRequestStart(controller) {
        response.once("close", () => {
          if (!response.writableFinished) controller.abort(new Error("the client left"))
        })
        response.on("drain", () => controller.resume())
      },
      onResponseStart(_controller, status, fields) {
        const head: Record<string, string | string[]> = {}
        for (const name of relayed) if (fields[name] !== undefined) head[name] = fields[name]
        response.writeHead(status, head)
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause()
      },
      onResponseEnd() {
        response.end()
      },
      onResponseError() {
        response.destroy()
      },
    },
  )
}

createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on("data", chunk => chunks.push(chunk))
  request.on("end", () => relay(request, response, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
}).listen(Number(port), "127.0.0.1", 4096)
