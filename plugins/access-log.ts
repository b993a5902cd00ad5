/**
 * One line per call: who asked for what, how it ended, what it cost, and where the time went; a second one when the bill
 * of a client that left comes later. And one per request that met no route.
 */

import {
  type Attempt,
  asGatewayError,
  type Billed,
  type Call,
  type GatewayError,
  type Host,
  type Outcome,
  type Plugin,
  type Stray,
} from "../core/index.ts"

/** A client's own id is for its own searches: cut, never trusted. */
const clientIdMax = 128

export default {
  name: "access-log",
  api: 1,
  setup(host) {
    host.onStray(stray => host.log.info(strayLine(stray), "refused before any route"))
    host.use({
      async run(call, next) {
        const started = performance.now()
        try {
          const outcome = await next()
          host.log.info(lineOf(call, outcome, since(started)), "call")
          void outcome.later?.then(billed => {
            if (billed.source !== "none") host.log.info(laterLine(call, billed), "billed after its client left")
          })
          return outcome
        } catch (thrown) {
          logRefusal(host, call, asGatewayError(thrown), since(started))
          throw thrown
        }
      },
    })
  },
} satisfies Plugin

const round = (ms: number): number => Math.round(ms * 100) / 100
const since = (started: number): number => round(performance.now() - started)

const clientId = (headers: Call["headers"]): string | undefined => {
  const sent = headers["x-request-id"]
  return sent === undefined ? undefined : String(sent).slice(0, clientIdMax)
}

/** In the words of a call; the path stands in place of the route. */
const strayLine = ({ id, error, request }: Stray) => ({
  id,
  ...(request && { client_request_id: clientId(request.headers), method: request.method, path: request.path }),
  status: error.kind.status,
  outcome: "rejected",
  code: error.code,
  error: error.message,
})

const callFields = (call: Call) => {
  const principal = call.find("principal")
  return {
    id: call.id,
    client_request_id: clientId(call.headers),
    method: call.method,
    route: call.route.path,
    organisation: principal?.organisation,
    member: principal?.member,
    key: principal?.key,
    model: call.find("model")?.model.name,
  }
}

const lineOf = (call: Call, outcome: Outcome, ms: number) => ({
  ...callFields(call),
  status: outcome.status,
  outcome: outcome.end,
  vendor: outcome.target?.vendor,
  attempts: wentWell(outcome) ? undefined : outcome.attempts.map(attemptOf),
  usage: outcome.usage,
  source: outcome.source === "none" ? undefined : outcome.source,
  micros: outcome.billedMicros,
  bytes: outcome.bytesOut,
  upstream_ms: round(outcome.upstreamMs),
  first_byte_ms: outcome.firstByteMs === undefined ? undefined : round(outcome.firstByteMs),
  streamed: outcome.streamed,
  ms,
})

/** The first attempt served the call, to the end: the line itself says all about it. */
const wentWell = ({ attempts }: Outcome): boolean =>
  attempts.length === 0 || (attempts.length === 1 && attempts[0]?.error === undefined)

const attemptOf = (attempt: Attempt): Attempt => ({ ...attempt, ms: round(attempt.ms) })

const laterLine = (call: Call, { usage, source, micros }: Billed) => ({ ...callFields(call), usage, source, micros })

/** A client's own mistake is `info`; everything else concerns us or a vendor. */
const logRefusal = (host: Host, call: Call, error: GatewayError, ms: number): void => {
  const { status, source } = error.kind
  const level =
    source === "client" ? "info" : error.code === "internal" || error.code === "plugin_failed" ? "error" : "warn"
  const { attempts } = call
  const tried = attempts.length === 0 ? {} : { vendor: attempts.at(-1)?.vendor, attempts: attempts.map(attemptOf) }
  const fields = { ...callFields(call), status, outcome: "rejected", code: error.code, ...tried, ms }
  host.log[level](error.cause === undefined ? fields : { ...fields, error: error.message, cause: error.cause }, "call")
}
