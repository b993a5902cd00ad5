/** The simulators behind a relay that wishes for a fault now and then, as vendors have them. */

import { createServer, request as requestTo } from "node:http"
import type { AddressInfo } from "node:net"
import { startSandbox } from "../../plugins/sandbox/index.ts"
import { pick } from "./random.ts"

export interface FaultyVendors {
  readonly origin: string
  /** How often each fault was asked for. */
  readonly faults: ReadonlyMap<string, number>
  close(): Promise<void>
}

/** Of a hundred requests. `stall` waits for the gateway's own deadline. */
const faults = [
  { name: "none", weight: 90 },
  { name: "429", weight: 2 },
  { name: "500", weight: 2 },
  { name: "refuse", weight: 2 },
  { name: "die", weight: 2 },
  { name: "drip", weight: 1.5 },
  { name: "stall", weight: 0.5 },
]

export const startFaultyVendors = async (random: () => number, pauseMs: number): Promise<FaultyVendors> => {
  const sandbox = await startSandbox({ pauseMs })
  const { hostname, port } = new URL(sandbox.origin)
  const counts = new Map<string, number>()
  const server = createServer((request, response) => {
    const { name } = pick(faults, random)
    counts.set(name, (counts.get(name) ?? 0) + 1)
    const headers = name === "none" ? request.headers : { ...request.headers, "x-sandbox-fault": name }
    const onward = requestTo({ hostname, port, method: request.method, path: request.url, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on("error", () => response.destroy())
      answer.pipe(response)
    })
    onward.on("error", () => response.destroy())
    response.on("close", () => onward.destroy())
    request.pipe(onward)
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults: counts,
    close: async () => {
      await new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      await sandbox.close()
    },
  }
}
