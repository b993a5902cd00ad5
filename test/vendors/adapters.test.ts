/** What adapters say of themselves: credentials, fields that cross, how the gateway's own errors look. */
import t from "tap"
import { type Adapter, type Dialect, GatewayError, type Vendor } from "../../core/index.ts"
import anthropic from "../../plugins/vendors/anthropic/index.ts"
import google from "../../plugins/vendors/google/index.ts"
import openai, { dialects } from "../../plugins/vendors/openai/index.ts"
import { eventsOf } from "../fixtures/metering.ts"

const adapters: readonly Adapter[] = [openai, anthropic, google]

t.test("each vendor is given its key in its own field, and nothing else", async t => {
  const secret = { name: "first", reveal: () => "k-1" }
  const vendor = { name: "v", origin: "https://vendor.example" } as Vendor
  t.same(
    adapters.map(adapter => adapter.authorise(secret, vendor)),
    [{ authorization: "Bearer k-1" }, { "x-api-key": "k-1" }, { "x-goog-api-key": "k-1" }],
  )
})

t.test("fields of accounts and credentials cross in no direction", async t => {
  const secretFields =
    "authorization x-api-key x-goog-api-key cookie set-cookie openai-organization openai-project " +
    "anthropic-organization-id anthropic-workspace-id x-request-id x-forwarded-for user-agent server alt-svc via"
  const crosses = (names: readonly string[], field: string): boolean =>
    names.some(name => (name.endsWith("*") ? field.startsWith(name.slice(0, -1)) : name === field))
  for (const { name, fields } of adapters) {
    for (const field of secretFields.split(" ")) {
      t.notOk(crosses(fields.toVendor, field), `${name}: ${field} to the vendor`)
      t.notOk(crosses(fields.toClient, field), `${name}: ${field} to the client`)
    }
    for (const listed of [...fields.toVendor, ...fields.toClient]) t.equal(listed, listed.toLowerCase())
    t.ok(crosses(fields.toClient, "retry-after"))
  }
  t.ok(crosses(anthropic.fields.toVendor, "anthropic-version"))
  t.ok(crosses(anthropic.fields.toVendor, "anthropic-beta"))
  t.ok(crosses(anthropic.fields.toClient, "anthropic-ratelimit-tokens-remaining"))
  t.ok(crosses(openai.fields.toClient, "x-ratelimit-remaining-tokens"))
  t.same([openai.fields.query, anthropic.fields.query, google.fields.query], [[], ["beta"], ["alt"]])
  t.notOk(crosses(google.fields.toVendor, "accept"), "google: no answer in another form than the meter reads")
  t.same(anthropic.defaults, { "anthropic-version": "2023-06-01" })
})

t.test("token counting is not metered", async t => {
  t.same([anthropic.apis.count_tokens.metered, google.apis.count.metered], [false, false])
  const reader = anthropic.apis.count_tokens.usage()
  reader.whole(Buffer.from('{"input_tokens": 7}'))
  t.same(reader.report(), { outputBytes: 0 })
})

const notFound = new GatewayError("model_not_found", "invalid_request_error - Model 'X' not found", { param: "model" })
const limited = new GatewayError("reservations_exceeded", "Too many reservations", {
  detail: { code: 6005, message: "Too many reservations" },
})

t.test("detail is the whole text, the SDK's message is the part after the dash", async t => {
  const detail = "invalid_request_error - Model 'X' not found"
  t.same(openai.dialect.render(notFound, "r1"), {
    detail,
    error: { message: "Model 'X' not found", type: "invalid_request_error", code: null, param: "model" },
  })
  t.same(anthropic.dialect.render(notFound, "r1"), {
    detail,
    type: "error",
    error: { type: "not_found_error", message: "Model 'X' not found" },
    request_id: "r1",
  })
  t.same(google.dialect.render(notFound, "r1"), {
    detail,
    error: { code: 404, message: "Model 'X' not found", status: "NOT_FOUND" },
  })
})

t.test("a dash inside a text is no border", async t => {
  const error = new GatewayError("invalid_request", "Size 1024 - 2048 is not offered")
  t.match(openai.dialect.render(error, "r1"), { error: { message: "Size 1024 - 2048 is not offered" } })
})

t.test("a detail of its own shape stands as it is", async t => {
  for (const { dialect } of adapters) {
    t.match(dialect.render(limited, "r1"), { detail: { code: 6005, message: "Too many reservations" } })
  }
  t.match(google.dialect.render(limited, "r1"), { error: { code: 429, status: "RESOURCE_EXHAUSTED" } })
  t.match(anthropic.dialect.render(limited, "r1"), { error: { type: "rate_limit_error" } })
})

t.test("a failure of the vendor has the word by which SDKs decide to retry", async t => {
  const type = (code: ConstructorParameters<typeof GatewayError>[0]) =>
    anthropic.dialect.render(new GatewayError(code, "m"), "r1").error
  t.match(type("upstream_overloaded"), { type: "overloaded_error" })
  t.match(type("upstream_timeout"), { type: "timeout_error" })
  t.match(type("upstream_account"), { type: "api_error" })
  t.match(type("internal"), { type: "api_error" })
  t.match(type("credits_exhausted"), { type: "billing_error" })
  t.match(type("body_too_large"), { type: "request_too_large" })
  t.match(type("invalid_request"), { type: "invalid_request_error" })
})

t.test("a stream that fails ends with one event that its own reader calls a fault", async t => {
  const error = new GatewayError("upstream_timeout", "The model's vendor did not answer in time")
  const wires: readonly (readonly [Dialect, Adapter, string, string | undefined])[] = [
    [openai.dialect, openai, "chat", undefined],
    [dialects[0] as Dialect, openai, "responses", "error"],
    [anthropic.dialect, anthropic, "messages", "error"],
    [google.dialect, google, "generate", undefined],
  ]
  for (const [dialect, adapter, api, type] of wires) {
    const events = eventsOf(Buffer.from(dialect.streamError(error, "r1")))
    t.equal(events.length, 1, dialect.name)
    t.match(events[0], type === undefined ? {} : { type })
    const [event] = events
    t.match(event && adapter.apis[api]?.sign(event), { sign: "fault" })
    t.ok(event?.data.includes("did not answer in time"))
  }
})

t.test("dialects have names of their own", async t => {
  const names = [...adapters.map(adapter => adapter.dialect), ...dialects].map(dialect => dialect.name)
  t.same(names, ["openai", "anthropic", "google", "openai-responses"])
  t.same(google.dialect.keyHeaders, ["x-goog-api-key"])
})
