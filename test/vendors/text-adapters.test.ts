/** Adapters of embeddings, rerank and search: counts by recorded numbers, faults by the vendors' tables, nothing throws. */
import fc from "fast-check"
import t from "tap"
import { type Adapter, GatewayError, type Vendor } from "../../core/index.ts"
import cohere from "../../plugins/vendors/cohere.ts"
import exa from "../../plugins/vendors/exa.ts"
import google from "../../plugins/vendors/google/index.ts"
import jina from "../../plugins/vendors/jina.ts"
import openai from "../../plugins/vendors/openai/index.ts"
import voyage from "../../plugins/vendors/voyage.ts"
import { meter } from "../fixtures/metering.ts"
import { recorded } from "../fixtures/recorded.ts"

const adapters: readonly Adapter[] = [cohere, voyage, jina, exa]
const body = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

t.test("every recorded answer is metered by its own numbers", async t => {
  const table = [
    [cohere.apis.embed, "cohere", "cohere-embedding.json", { input: 10 }],
    [cohere.apis.rerank, "cohere", "cohere-reranking.1.json", { requests: 1 }],
    [voyage.apis.embeddings, "voyage", "voyage-embed-query.exchange.json", { input: 3 }],
    [voyage.apis.rerank, "voyage", "voyage-reranking.1.json", { input: 12 }],
    [openai.apis.rerank, "together", "togetherai-reranking.1.json", { input: 2966 }],
    [google.apis.embed, "google", "google-embed-query-with-dimensions.exchange.json", undefined],
  ] as const
  for (const [api, vendor, file, usage] of table) {
    const { surprises, ...report } = meter(api, recorded(vendor, file)[0]!)
    t.same(report, { outputBytes: 1, wordless: true, ...(usage === undefined ? {} : { usage }) }, file)
    t.same(surprises, [])
  }
})

t.test("counts that cannot be are no bill, and are told", async t => {
  const counted = (total_tokens: unknown) =>
    meter(jina.apis.rerank, { streamed: false, body: body({ results: [{}], usage: { total_tokens } }) })
  for (const total_tokens of [-1, 1.5, 1_000_000_001, "3", null]) {
    const { usage, surprises } = counted(total_tokens)
    t.equal(usage, undefined)
    t.same(surprises, total_tokens === null ? [] : ["bad_count"])
  }
  t.match(counted(1_000_000_000), { usage: { input: 1_000_000_000 }, surprises: [] })
})

t.test("each vendor is given its key in its own field", async t => {
  const secret = { name: "first", reveal: () => "k-1" }
  const keys = adapters.map(adapter => adapter.authorise(secret, {} as Vendor))
  const bearer = { authorization: "Bearer k-1" }
  t.same(keys, [bearer, bearer, bearer, { "x-api-key": "k-1" }])
})

t.test("faults are known by status, by words, and by the first words of a sentence", async t => {
  const kind = ({ fault }: Adapter, status: number, answer: unknown): string => fault(status, body(answer), {}).kind
  t.equal(kind(cohere, 401, { message: "invalid api token" }), "account")
  t.equal(kind(cohere, 498, {}), "account")
  t.equal(kind(cohere, 429, { message: "You are using a Trial key, which is limited" }), "account")
  t.equal(kind(cohere, 429, { message: "rate limit" }), "rate_limited")
  t.equal(kind(cohere, 400, { message: "text was: You are using a Trial key" }), "invalid", "a quoted client")
  t.equal(kind(cohere, 404, { message: "model 'x' not found" }), "not_found")
  t.equal(kind(voyage, 429, { detail: "You have not yet added your payment method" }), "account")
  t.equal(kind(voyage, 400, { detail: "too many" }), "invalid")
  t.equal(kind(voyage, 400, { detail: "text was: Provided API key is invalid" }), "invalid", "a quoted client")
  t.equal(kind(jina, 400, { detail: "text was: Insufficient balance" }), "invalid", "a quoted client")
  t.equal(kind(jina, 402, { detail: "Insufficient balance" }), "account")
  t.equal(kind(jina, 422, { detail: [{ msg: "bad" }] }), "invalid")
  t.equal(kind(jina, 503, {}), "overloaded")
  t.equal(kind(exa, 400, { error: "no", tag: "NO_MORE_CREDITS" }), "account")
  t.equal(kind(exa, 422, { error: "no", tag: "INVALID_URLS" }), "invalid")
  t.equal(kind(exa, 500, { error: "no", tag: "constructor" }), "server")
  t.match(cohere.fault(429, body({}), { "retry-after": "7" }), { retryAfterMs: 7000 })
})

t.test("whatever a vendor sends, reading it throws nothing", async t => {
  fc.assert(
    fc.property(fc.json(), fc.integer({ min: 400, max: 599 }), (text, status) => {
      for (const { fault, apis } of adapters) {
        fault(status, Buffer.from(text), {})
        for (const api of Object.values(apis)) {
          meter(api, { streamed: false, body: Buffer.from(text) })
          api.sign({ data: Buffer.from(text) })
        }
      }
    }),
  )
  t.pass()
})

t.test("the gateway's own errors look as these vendors' do", async t => {
  const error = new GatewayError("credits_exhausted", "insufficient_credits - No credits")
  const own = { detail: "insufficient_credits - No credits", message: "No credits" }
  t.same(
    adapters.map(({ dialect }) => dialect.render(error, "r1")),
    [own, own, own, { detail: own.detail, requestId: "r1", error: "No credits", tag: "NO_MORE_CREDITS" }],
  )
  t.match(exa.apis.answer.sign({ data: Buffer.from(exa.dialect.streamError(error, "r1").slice(6)) }), { sign: "fault" })
})
