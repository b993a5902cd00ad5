/** What vendors' errors mean, in every shape that was recorded or documented. */
import fc from "fast-check"
import t from "tap"
import { type Adapter, type Fault, faultCodes } from "../../core/index.ts"
import anthropic from "../../plugins/vendors/anthropic/index.ts"
import google from "../../plugins/vendors/google/index.ts"
import openai from "../../plugins/vendors/openai/index.ts"
import { recorded } from "../fixtures/recorded.ts"

const adapters: readonly Adapter[] = [openai, anthropic, google]

const fault = (adapter: Adapter, status: number, body: unknown, headers: Record<string, string> = {}): Fault =>
  adapter.fault(status, Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), headers)

t.test("a status alone says what kind of fault it is", async t => {
  const kinds: Readonly<Record<number, Fault["kind"]>> = {
    400: "invalid",
    401: "account",
    402: "account",
    403: "account",
    404: "not_found",
    408: "timeout",
    409: "invalid",
    413: "too_large",
    422: "invalid",
    429: "rate_limited",
    500: "server",
    502: "server",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
  }
  for (const adapter of adapters) {
    for (const [status, kind] of Object.entries(kinds)) {
      for (const body of ["", "<html><body>Bad</body></html>", "{}"]) {
        const found = fault(adapter, Number(status), body)
        t.match(found, { kind, status: Number(status) }, `${adapter.name} ${status}`)
        t.not(found.message, "")
      }
    }
  }
})

t.test("faults of our account are known by their words, and nothing of the vendor's text is told", async t => {
  const faults: readonly (readonly [Adapter, number, unknown])[] = [
    [openai, 401, { error: { message: "Incorrect API key provided: sk-abc***xyz", code: "invalid_api_key" } }],
    [openai, 429, { error: { message: "quota of org", type: "insufficient_quota", code: "insufficient_quota" } }],
    [
      openai,
      429,
      { error: { message: "credits of org", type: "insufficient_quota", code: "credit_balance_exhausted" } },
    ],
    [openai, 429, { error: { message: "quota of org", type: "exceeded_current_quota_error" } }],
    [openai, 400, { error: { message: "Access denied, overdue", code: "Arrearage" } }],
    [openai, 400, { error: "Incorrect API key provided: xa***1", code: "Client specified an invalid argument" }],
    [
      openai,
      400,
      [{ error: { code: 400, message: "API key not valid. Please pass one", status: "INVALID_ARGUMENT" } }],
    ],
    [openai, 402, { error: { message: "Insufficient Balance", type: "unknown_error" } }],
    [
      anthropic,
      400,
      { type: "error", error: { type: "invalid_request_error", message: "Your credit balance is too low to ask" } },
    ],
    [
      anthropic,
      429,
      { error: { type: "rate_limit_error", message: "m", details: { error_code: "enforced_spend_limit_reached" } } },
    ],
    [
      anthropic,
      400,
      { error: { type: "invalid_request_error", message: "You have reached your specified spend limit" } },
    ],
    [anthropic, 402, { error: { type: "billing_error", message: "pay" } }],
    [
      google,
      400,
      { error: { code: 400, status: "INVALID_ARGUMENT", message: "bad", details: [{ reason: "API_KEY_INVALID" }] } },
    ],
    [google, 400, { error: { code: 400, status: "INVALID_ARGUMENT", message: "API key not valid. Please pass one" } }],
    [google, 400, { error: { code: 400, status: "FAILED_PRECONDITION", message: "User location is not supported" } }],
    [google, 403, { error: { code: 403, status: "PERMISSION_DENIED", message: "Project 123456 has no access" } }],
  ]
  for (const [adapter, status, body] of faults) {
    const found = fault(adapter, status, body)
    t.same(
      found,
      { kind: "account", status, message: "The model is not available at the moment" },
      JSON.stringify(body),
    )
    t.equal(faultCodes[found.kind], "upstream_account")
  }
})

t.test("a client cannot make its own fault look like one of our account", async t => {
  const quotes = [
    "invalid api key",
    "api key not valid",
    "API_KEY_INVALID",
    "your credit balance is too low",
    "you have reached your spend limit",
    "insufficient_quota",
  ]
  for (const quote of quotes) {
    for (const message of [`Unexpected value(s) \`${quote}\` for the field`, `Invalid value: '${quote}'.`]) {
      for (const adapter of adapters) {
        const body = { error: { type: "invalid_request_error", status: "INVALID_ARGUMENT", code: null, message } }
        t.match(fault(adapter, 400, body), { kind: "invalid" }, `${adapter.name}: ${message}`)
      }
    }
  }
})

t.test("a client's fault keeps the vendor's words, in any envelope", async t => {
  const told: readonly (readonly [Adapter, number, unknown, Partial<Fault>])[] = [
    [
      openai,
      400,
      { error: { message: "too hot", type: "invalid_request_error", param: "temperature", code: "unsupported_value" } },
      { kind: "invalid", message: "too hot", param: "temperature", reason: "unsupported_value" },
    ],
    [
      openai,
      400,
      { error: { message: "too hot", type: null, param: null, code: null } },
      { kind: "invalid", message: "too hot" },
    ],
    [openai, 400, { error: "just a text" }, { kind: "invalid", message: "just a text" }],
    [
      openai,
      400,
      [{ error: { code: 400, message: "in a list", status: "INVALID_ARGUMENT" } }],
      { kind: "invalid", message: "in a list" },
    ],
    [
      openai,
      422,
      { detail: [{ loc: ["body"], msg: "Field required", type: "missing" }] },
      { kind: "invalid", message: "Field required" },
    ],
    [
      openai,
      422,
      { object: "error", message: { detail: [{ loc: ["body", "messages", 0, "name"], msg: "Extra" }] }, code: null },
      { kind: "invalid", message: "Extra", param: "messages.0.name" },
    ],
    [openai, 422, { message: [{ loc: ["body", "seed"], msg: "Extra" }], code: 3001 }, { param: "seed" }],
    [openai, 400, { detail: "a detail" }, { kind: "invalid", message: "a detail" }],
    [openai, 404, { id: "1", message: "model 'x' not found" }, { kind: "not_found", message: "model 'x' not found" }],
    [openai, 400, { error: { message: "no such model", code: "model_not_found" } }, { kind: "not_found", status: 400 }],
    [
      openai,
      400,
      { error: { message: "refused", type: "image_generation_user_error", code: "moderation_blocked" } },
      { kind: "content_policy", message: "refused" },
    ],
    [openai, 413, { error: { message: "too big" } }, { kind: "too_large", message: "too big" }],
    [
      anthropic,
      400,
      { type: "error", error: { type: "invalid_request_error", message: "max_tokens: required" } },
      { kind: "invalid", message: "max_tokens: required" },
    ],
    [
      anthropic,
      413,
      { error: { type: "request_too_large", message: "32 MB" } },
      { kind: "too_large", message: "32 MB" },
    ],
    [
      google,
      400,
      { error: { code: 400, status: "INVALID_ARGUMENT", message: "bad part" } },
      { kind: "invalid", message: "bad part" },
    ],
    [
      google,
      400,
      [{ candidates: [] }, { error: { code: 400, message: "bad part" } }],
      { kind: "invalid", message: "bad part" },
    ],
  ]
  for (const [adapter, status, body, expected] of told)
    t.match(fault(adapter, status, body), expected, JSON.stringify(body))
})

t.test("recorded errors", async t => {
  const files: readonly (readonly [Adapter, string, string, Partial<Fault>])[] = [
    [
      openai,
      "openai-chat",
      "openai-o1-mini-system-role-developer.exchange.json",
      { kind: "invalid", status: 400, param: "messages[0].role", reason: "unsupported_value" },
    ],
    [
      openai,
      "openai-chat",
      "openai-web-search-tool-model-not-supported.exchange.json",
      { kind: "invalid", param: "web_search_options" },
    ],
    [
      openai,
      "openai-responses",
      "openai-responses-model-http-error.exchange.json",
      { kind: "invalid", reason: "decimal_below_min_value" },
    ],
    [openai, "openai-compatible", "openrouter-errors-raised.exchange.json", { kind: "rate_limited", status: 429 }],
    [openai, "groq", "tool-use-failed-error.exchange.json", { kind: "invalid", reason: "tool_use_failed" }],
    [
      anthropic,
      "anthropic",
      "anthropic-count-tokens-error.exchange.json",
      { kind: "not_found", message: "model: claude-does-not-exist" },
    ],
    [google, "google", "google-embed-embed-error.exchange.json", { kind: "not_found", status: 404 }],
  ]
  for (const [adapter, folder, name, expected] of files) {
    const answer = recorded(folder, name).find(answer => answer.status >= 400)
    t.match(answer && adapter.fault(answer.status, answer.body, answer.headers), expected, name)
  }
  const quota = recorded("google", "google-429-retry-info.json").map(answer => google.fault(429, answer.body, {}))
  t.match(quota, [{ kind: "rate_limited", retryAfterMs: 34_400 }])
})

t.test("the waiting time is read from each of its forms", async t => {
  const date = "Sat, 21 Nov 2026 10:00:00 GMT"
  const waits: readonly (readonly [Record<string, string>, number | undefined])[] = [
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after-ms": "1234", "retry-after": "9" }, 1_234],
    [{ "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", date }, 30_000],
    [{ "retry-after": "Sat, 21 Nov 2026 09:00:00 GMT", date }, 0],
    [{ "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "" }, undefined],
    [{ "retry-after-ms": "-5" }, undefined],
    [{ "retry-after": "999999999999" }, 86_400_000],
    [{}, undefined],
  ]
  for (const adapter of adapters) {
    for (const [headers, wait] of waits) {
      t.equal(fault(adapter, 429, "", headers).retryAfterMs, wait, `${adapter.name} ${JSON.stringify(headers)}`)
    }
  }
})

t.test("nothing of our account is left in a message", async t => {
  const message =
    "Bad request in organization org-AbCdEf123456 project proj_AbCdEf123456 (projects/123456789): key sk-proj-abc***wxyz " +
    "or AIzaSyABCDEF or Bearer abc.def, see https://platform.example/account?id=1 and wss://x.example/y, n must be 1"
  for (const adapter of adapters) {
    const found = fault(adapter, 400, { error: { message, type: "invalid_request_error", status: "INVALID_ARGUMENT" } })
    t.notMatch(found.message, /AbCdEf|123456|sk-|AIza|abc\.def|:\/\/|\*\*\*/, adapter.name)
    t.match(found.message, /^Bad request in organization .* n must be 1$/)
  }
  t.ok(fault(openai, 400, { error: { message: "x".repeat(100_000) } }).message.length <= 2_000)
  const words = "user-defined tools take key-value pairs, org-wide, in project 3"
  t.equal(fault(openai, 400, { error: { message: words } }).message, words)
})

t.test("a rate limit tells nothing of our limits", async t => {
  const message = "Rate limit reached for m in organization org-AbCdEf123456 on tokens per min (TPM): Limit 30000"
  t.notMatch(fault(openai, 429, { error: { message, code: "rate_limit_exceeded" } }).message, /org|30000/)
})

t.test("no body makes an adapter throw", async () => {
  const status = fc.integer({ min: 400, max: 599 })
  const json = fc.jsonValue().map(value => JSON.stringify(value))
  const errorLike = fc
    .record({ error: fc.jsonValue(), detail: fc.jsonValue(), message: fc.jsonValue() })
    .map(value => JSON.stringify(value))
  const bytes = fc.uint8Array({ maxLength: 60 }).map(array => Buffer.from(array).toString("latin1"))
  const property = fc.property(status, fc.oneof(json, errorLike, bytes), (status, body) =>
    adapters.every(adapter => {
      const found = fault(adapter, status, body)
      return found.status === status && found.message !== "" && found.kind in faultCodes
    }),
  )
  fc.assert(property, { numRuns: 300 })
})
