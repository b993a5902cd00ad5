/** Refuses, before routing, what node's parser lets through and two parsers could read differently. */

import type { IncomingMessage } from "node:http"
import { type ErrorCode, GatewayError } from "../errors.ts"
import { credentialFields } from "../kit/credentials.ts"

const linesMax = 100
const bytesMax = 16 * 1024
/** What a line costs beside its name and value: colon, blank, CR, LF. */
const lineBytes = 4

/** The methods of routes, and HEAD, which is answered as GET. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])

/** A name, an IPv4 address or a bracketed IPv6 address, with or without a port; nothing that a URL could bend. */
const hostForm = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

const refusal = (code: ErrorCode, message: string): GatewayError => new GatewayError(code, message)

// Made once: a flood of bad requests should not pay for stacks.
const refusals = {
  version: refusal("http_version", "Only HTTP/1.1 and HTTP/1.0 are understood."),
  method: refusal("not_implemented", "This method is not implemented."),
  target: refusal("invalid_request", "The request target must be an absolute path."),
  lines: refusal("fields_too_large", `The request has more than ${linesMax} header fields.`),
  bytes: refusal("fields_too_large", "The header fields are too large."),
  host: refusal("invalid_request", "The Host header field must be given once, as host or host:port."),
  credentials: refusal("invalid_request", "A header field with credentials may be given once only."),
  transfer: refusal("invalid_request", "Transfer-Encoding may only be chunked, with HTTP/1.1."),
  coded: refusal("unsupported_media_type", "Content-Encoding is not supported. Send the body as it is."),
}

export const unknownMethod = refusals.method

/** `undefined` = fine. Allocates nothing then. */
export const frontCheck = (request: IncomingMessage): GatewayError | undefined => {
  const { httpVersion } = request
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return refusals.version
  if (!methods.has(request.method as string)) return refusals.method
  if (!isOriginForm(request.url as string)) return refusals.target
  return checkFields(request.rawHeaders, httpVersion)
}

/** The refusal of a body in a content coding: a small bomb could become a large body. */
export const codedBody = (request: IncomingMessage): GatewayError | undefined =>
  isIdentity(request.headers["content-encoding"] ?? "identity") ? undefined : refusals.coded

const isIdentity = (coding: string): boolean => same(coding, "identity")

/** RFC 9112 section 3.2.1. A backslash, or a second slash, makes some parsers read a host; a `#` is never sent. */
const isOriginForm = (target: string): boolean =>
  target.charCodeAt(0) === 0x2f && target.charCodeAt(1) !== 0x2f && !target.includes("\\") && !target.includes("#")

/** `raw` is name, value, name, value ... as sent: node's own `headers` hides repetitions. */
const checkFields = (raw: readonly string[], httpVersion: string): GatewayError | undefined => {
  if (raw.length > 2 * linesMax) return refusals.lines
  let bytes = 0
  let seen = 0
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string
    const value = raw[at + 1] as string
    bytes += name.length + value.length + lineBytes
    const index = watchedIndex(name)
    if (index < 0) continue
    const { once, check } = watched[index] as Watched
    if (once !== undefined && (seen & (1 << index)) !== 0) return once
    seen |= 1 << index
    const problem = check?.(value, httpVersion)
    if (problem !== undefined) return problem
  }
  // Node's own answer to a missing Host would leave what follows on the connection to be served.
  if ((seen & hostSeen) === 0 && httpVersion === "1.1") return refusals.host
  return bytes > bytesMax ? refusals.bytes : undefined
}

interface Watched {
  readonly name: string
  /** The refusal of a second one. */
  readonly once?: GatewayError
  readonly check?: (value: string, httpVersion: string) => GatewayError | undefined
}

/** The bit of `host`, the first of `watched`. */
const hostSeen = 1

const watched: readonly Watched[] = [
  { name: "host", once: refusals.host, check: value => (hostForm.test(value) ? undefined : refusals.host) },
  ...credentialFields.map(name => ({ name, once: refusals.credentials })),
  {
    name: "transfer-encoding",
    once: refusals.transfer,
    check: (value, version) => (value === "chunked" && version === "1.1" ? undefined : refusals.transfer),
  },
  { name: "content-encoding", check: value => (isIdentity(value) ? undefined : refusals.coded) },
]

/** Which of `watched` have a name of this length: most fields are passed over by that alone. */
const byLength: readonly (readonly number[])[] = Array.from(
  { length: 1 + Math.max(...watched.map(({ name }) => name.length)) },
  (_, length) => watched.flatMap(({ name }, index) => (name.length === length ? [index] : [])),
)

const watchedIndex = (name: string): number => {
  if (name.length >= byLength.length) return -1
  for (const index of byLength[name.length]!) if (same(name, watched[index]!.name)) return index
  return -1
}

/** Equal but for the case of ASCII letters; `lower` is in lower case. */
const same = (text: string, lower: string): boolean => {
  if (text.length !== lower.length) return false
  for (let at = 0; at < lower.length; at += 1) {
    const code = text.charCodeAt(at)
    if ((code >= 0x41 && code <= 0x5a ? code | 0x20 : code) !== lower.charCodeAt(at)) return false
  }
  return true
}
