import { once } from "node:events"
import { createServer, type Server } from "node:http"
import { type AddressInfo, connect } from "node:net"
import t, { type Test } from "tap"
import { frontCheck } from "../../core/http/front-check.ts"

/** What a raw request meets: node's parser (`parser`), the front check (its status), or the handler (`taken`). */
type Fate = "taken" | "parser" | number

const listen = async (t: Test): Promise<(request: string) => Promise<Fate>> => {
  let fate: Fate = "parser"
  const server: Server = createServer((request, response) => {
    fate = frontCheck(request)?.kind.status ?? "taken"
    response.writeHead(fate === "taken" ? 200 : fate, { connection: "close" }).end()
  })
  server.maxHeadersCount = 0
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return async request => {
    fate = "parser"
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
    socket.on("error", () => {}) // a refused request may be answered with a reset
    socket.resume()
    socket.end(Buffer.from(request, "latin1"))
    await once(socket, "close")
    return fate
  }
}

const get = (fields = "", target = "/x", version = "HTTP/1.1") => `GET ${target} ${version}\r\nHost: a\r\n${fields}\r\n`
const post = (fields: string, body = "", version = "HTTP/1.1") =>
  `POST /x ${version}\r\nHost: a\r\n${fields}\r\n${body}`
const host = (field: string) => `GET /x HTTP/1.1\r\n${field}\r\n`

/** Each row was sent to a bare node:http server: `parser` stands where that already refuses. */
const cases: Readonly<Record<string, readonly (readonly [Fate, string, string])[]>> = {
  "ordinary requests are taken": [
    ["taken", "GET", get()],
    ["taken", "HTTP/1.0", get("", "/x", "HTTP/1.0")],
    ["taken", "HTTP/1.0 without Host", "GET /x HTTP/1.0\r\n\r\n"],
    ["taken", "a body with a length", post("Content-Length: 2\r\n", "hi")],
    ["taken", "a chunked body", post("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n")],
    ["taken", "identity coding", post("Content-Encoding: Identity\r\nContent-Length: 0\r\n")],
    ["taken", "a query with slashes", get("", "/x?a=//b&c=%5C%23")],
    ["taken", "one of each credential", get("Authorization: a\r\nX-Api-Key: b\r\nx-goog-api-key: c\r\n")],
    ["taken", "a repeated other field", get("Accept: a\r\nAccept: b\r\nX-Api-Kez: a\r\nX-Api-Kez: b\r\n")],
  ],
  "another version is 505": [
    [505, "no version", "GET /x\r\n\r\n"],
    [505, "no version, with fields and a body", "POST /x\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"],
    [505, "HTTP/0.9", get("", "/x", "HTTP/0.9")],
    [505, "HTTP/2.0 on a text line", get("", "/x", "HTTP/2.0")],
    ["parser", "HTTP/1.2", get("", "/x", "HTTP/1.2")],
    ["parser", "HTTP/3.0", get("", "/x", "HTTP/3.0")],
    ["parser", "the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ],
  "a method outside the routes' own is 501": [
    ...["OPTIONS", "TRACE", "PROPFIND", "QUERY", "SEARCH", "LINK"].map(
      method => [501, method, `${method} /x HTTP/1.1\r\nHost: a\r\n\r\n`] as const,
    ),
    ["parser", "an unknown word", "BREW /x HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["parser", "lower case", "get /x HTTP/1.1\r\nHost: a\r\n\r\n"],
    ...["HEAD", "POST", "PUT", "PATCH", "DELETE"].map(
      method => ["taken", method, `${method} /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`] as const,
    ),
  ],
  "a target that is not an absolute path is 400": [
    [400, "an absolute URL", get("", "http://a/x")],
    [400, "an asterisk", get("", "*")],
    [400, "two slashes", get("", "//evil.example/x")],
    [400, "a backslash", get("", "/a\\b")],
    [400, "a slash and a backslash", get("", "/\\evil.example")],
    [400, "a fragment", get("", "/a#b")],
    [400, "a fragment in the query", get("", "/a?b#c")],
    ["parser", "no slash", get("", "x")],
    ["parser", "only a query", get("", "?a")],
    ["parser", "a control", get("", "/a\u0001b")],
    ["parser", "a tab", get("", "/a\tb")],
    ["parser", "a byte beyond ASCII", get("", "/\u00e9")],
    ["parser", "a blank", get("", "/a b")],
  ],
  "Host stands once, as host or host:port": [
    [400, "two, equal", host("Host: a\r\nHost: a\r\n")],
    [400, "two, different", host("Host: a\r\nHOST: b\r\n")],
    [400, "empty", host("Host:\r\n")],
    [400, "a URL's parts", host("Host: x/#@y\r\n")],
    [400, "a user", host("Host: user@a\r\n")],
    [400, "a blank inside", host("Host: a b\r\n")],
    [400, "a list", host("Host: a, b\r\n")],
    [400, "a port that is none", host("Host: a:b\r\n")],
    [400, "an empty port", host("Host: a:\r\n")],
    [400, "an open bracket", host("Host: [::1\r\n")],
    ["parser", "none", "GET /x HTTP/1.1\r\n\r\n"],
    ["taken", "a port", host("Host: gateway_1.example:8787\r\n")],
    ["taken", "IPv4", host("Host: 127.0.0.1:80\r\n")],
    ["taken", "IPv6", host("Host: [::1]:80\r\n")],
  ],
  "Transfer-Encoding is exactly chunked, and only with HTTP/1.1": [
    [400, "two codings", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")],
    [400, "another case", post("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n")],
    [400, "identity", post("Transfer-Encoding: identity\r\n")],
    [400, "something like it", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")],
    [400, "on GET", get("Transfer-Encoding: gzip\r\n")],
    [400, "with HTTP/1.0", post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "HTTP/1.0")],
    ["parser", "twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")],
    ["parser", "chunked not last", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")],
    ["parser", "empty", post("Transfer-Encoding:\r\n")],
    ["parser", "a control before it", post("Transfer-Encoding: \u000bchunked\r\n", "0\r\n\r\n")],
    ["parser", "with a length", post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n")],
  ],
  "credentials stand once": [
    [400, "authorization", get("Authorization: a\r\nauthorization: b\r\n")],
    [400, "authorization, equal", get("Authorization: a\r\nAuthorization: a\r\n")],
    [400, "x-api-key", get("x-api-key: a\r\nX-API-KEY: b\r\n")],
    [400, "x-goog-api-key", get("x-goog-api-key: a\r\nX-Goog-Api-Key: b\r\n")],
  ],
  "too many or too large fields are 431": [
    ["taken", "100 lines", get("a: b\r\n".repeat(99))],
    [431, "101 lines", get("a: b\r\n".repeat(100))],
    [431, "3,001 lines", get("a:\r\n".repeat(3000))],
    [431, "over 16 KB with what stands between", get(`a: ${"b".repeat(162)}\r\n`.repeat(99))],
    ["parser", "one field of 17 KB", get(`a: ${"b".repeat(17_000)}\r\n`)],
  ],
  "a coded body is 415": [
    [415, "gzip", post("Content-Encoding: gzip\r\nContent-Length: 0\r\n")],
    [415, "two codings", post("Content-Encoding: identity, br\r\nContent-Length: 0\r\n")],
    [415, "a second field", post("Content-Encoding: identity\r\ncontent-encoding: gzip\r\nContent-Length: 0\r\n")],
    [415, "an empty one", post("Content-Encoding:\r\nContent-Length: 0\r\n")],
  ],
  "node's parser still refuses what the front check leaves to it": [
    ["parser", "two lengths", post("Content-Length: 2\r\nContent-Length: 2\r\n", "hi")],
    ["parser", "a list of lengths", post("Content-Length: 2, 2\r\n", "hi")],
    ["parser", "a signed length", post("Content-Length: +2\r\n", "hi")],
    ["parser", "a folded line", get("a: b\r\n c\r\n")],
    ["parser", "a blank before the colon", get("a : b\r\n")],
    ["parser", "no name", get(": b\r\n")],
    ["parser", "bare LF", "GET /x HTTP/1.1\nHost: a\n\n"],
    ["parser", "bare CR", get("a: b\rc\r\n")],
    ["parser", "NUL", get("a: b\u0000c\r\n")],
    ["parser", "a control", get("a: b\u0001c\r\n")],
  ],
}

for (const [sentence, rows] of Object.entries(cases)) {
  t.test(sentence, async t => {
    const send = await listen(t)
    for (const [fate, name, request] of rows) t.equal(await send(request), fate, name)
  })
}

t.test("a refusal tells nothing of the request", async t => {
  const error = frontCheck({ httpVersion: "1.1", method: "GET", url: "//canary", rawHeaders: [] } as never)
  t.match(error, { code: "invalid_request", message: "The request target must be an absolute path." })
})
