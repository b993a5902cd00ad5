import fc from "fast-check"
import t from "tap"
import type { Host, Model, Outcome, Route, Target } from "../../core/index.ts"
import { keyOf } from "../../plugins/auth.ts"
import { labelOf, tokenCounts } from "../../plugins/metrics.ts"
import { ordered, resolve } from "../../plugins/model.ts"
import { typesOf } from "../../plugins/models.ts"
import { rangeOf } from "../../plugins/usage.ts"

t.test("auth: the key", async t => {
  await t.test("is taken from either header, whatever the scheme's case", async t => {
    t.equal(keyOf({ authorization: "Bearer tg_a" }), "tg_a")
    t.equal(keyOf({ authorization: "bearer  tg_a " }), "tg_a")
    t.equal(keyOf({ "x-api-key": "tg_a" }), "tg_a")
    t.equal(keyOf({ "x-api-key": "tg_a", authorization: "Bearer tg_a" }), "tg_a")
  })

  await t.test("is taken from the SDK's own header on its own routes only", async t => {
    t.equal(keyOf({ "x-goog-api-key": "tg_a" }, ["x-goog-api-key"]), "tg_a")
    t.throws(() => keyOf({ "x-goog-api-key": "tg_a" }), { message: "Authorization header is not supplied" })
  })

  const refused: readonly [what: string, headers: Record<string, string>, text: string][] = [
    ["no header", {}, "Authorization header is not supplied"],
    ["an empty x-api-key", { "x-api-key": " " }, "Authorization header is not supplied"],
    ["an empty Authorization", { authorization: "" }, "Bearer token is not supplied"],
    ["a scheme without a token", { authorization: "Bearer" }, "Bearer token is not supplied"],
    ["another scheme", { authorization: "Basic abc" }, "Bearer token is not supplied"],
    ["two tokens", { authorization: "Bearer a b" }, "Bearer token is not supplied"],
    ["a bare token", { authorization: "tg_a" }, "Bearer token is not supplied"],
    [
      "a malformed header beside a good key",
      { authorization: "tg_a", "x-api-key": "tg_a" },
      "Bearer token is not supplied",
    ],
    ["two different keys", { authorization: "Bearer a", "x-api-key": "b" }, "Invalid API key"],
    ["control characters", { "x-api-key": "tg\u0001a" }, "Invalid API key"],
    ["characters beyond ASCII", { authorization: "Bearer tg\u00e9" }, "Invalid API key"],
    ["an endless key", { authorization: `Bearer ${"a".repeat(600)}` }, "Invalid API key"],
  ]
  for (const [what, headers, message] of refused) {
    await t.test(`is refused: ${what}`, async t => {
      t.throws(() => keyOf(headers), { code: "unauthorized", message })
    })
  }
})

t.test("model: the order of candidates", async t => {
  const target = (vendor: string, weight?: number): Target =>
    weight === undefined ? { vendor, model: "m" } : { vendor, model: "m", weight }
  const names = (targets: readonly Target[]) => targets.map(one => one.vendor).join()

  await t.test("draws the weighted by their shares; the others follow in their order", async t => {
    const targets = [target("fallback-1"), target("a", 3), target("b", 1), target("fallback-2")]
    t.equal(names(ordered(targets, () => 0)), "a,b,fallback-1,fallback-2")
    t.equal(names(ordered(targets, () => 0.74)), "a,b,fallback-1,fallback-2")
    t.equal(names(ordered(targets, () => 0.76)), "b,a,fallback-1,fallback-2")
  })

  await t.test("loses and repeats nobody", async () => {
    const some = fc.array(fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(some, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (weights, chance) => {
        const targets = weights.map((weight, at) => target(`v${at}`, weight))
        const order = ordered(targets, () => chance)
        return order.length === targets.length && new Set(order).size === targets.length
      }),
    )
  })
})

t.test("model: what a route of pictures says of a name", async t => {
  const model = (name: string, type: Model["type"], offered = true): Model => ({
    name,
    type,
    family: "acme",
    targets: [],
    created: 0,
    rules: {},
    messages: false,
    offered,
    capabilities: [],
    aliases: [],
  })
  const models = new Map(
    [
      model("brush", "image"),
      model("pencil", "image"),
      model("forbidden", "image"),
      model("hidden", "image", false),
      model("film", "video"),
      model("forbidden-film", "video"),
      model("forbidden-words", "llm"),
    ].map(one => [one.name, one]),
  )
  const route: Route = {
    method: "POST",
    path: "/images/",
    access: "key",
    dialect: "plain",
    model: "body",
    accepts: { types: ["image"], otherwise: { code: "model_mismatch", message: "Model 'X' is not an image model" } },
    charge: "acceptance",
    limit: "common",
    handle: () => Promise.reject(),
  }
  const disabled = ["forbidden", "forbidden-film", "forbidden-words"]
  const organisation = { name: "acme", title: "", gateway: true, models: "all", disabled } as const
  const refusal = (asked: string) => {
    const catalog = { models, find: (name: string) => models.get(name) } as unknown as Host["catalog"]
    try {
      return resolve({ catalog }, route, asked, organisation).model.name
    } catch (error) {
      const { code, message } = error as { code: string; message: string }
      return { code, message }
    }
  }
  t.equal(refusal("brush"), "brush")
  t.same(
    refusal("nobody"),
    { code: "model_not_found", message: "Model 'nobody' not found. Available models: brush, pencil" },
    "those that this organisation may use here, and no others",
  )
  t.same(refusal("forbidden"), {
    code: "model_not_enabled",
    message: "Model 'forbidden' is not enabled for your tenant.",
  })
  for (const other of ["forbidden-film", "forbidden-words"])
    t.match(refusal(other), { code: "model_not_found", message: `Model '${other}' not found` })
  t.match(refusal("hidden"), { code: "model_not_offered" })
  t.same(refusal("film"), { code: "model_mismatch", message: "Model 'film' is not an image model" })
})

t.test("models: the type filter", async t => {
  t.equal(typesOf(null).size, 9)
  t.same([...typesOf("llm")], ["llm"])
  t.same([...typesOf("image, video")], ["image", "video"])
  t.throws(() => typesOf("llm,toaster"), { code: "validation_failed" })
})

t.test("usage: the range of days", async t => {
  const range = (query: string) => rangeOf(new URLSearchParams(query), "2026-11-21")

  await t.test("is the current month unless told otherwise", async t => {
    t.same(range(""), { from: "2026-11-01", to: "2026-11-21" })
    t.same(range("to=2026-09-30"), { from: "2026-09-01", to: "2026-09-30" })
    t.same(range("from=2026-10-05&to=2026-10-05"), { from: "2026-10-05", to: "2026-10-05" })
  })

  await t.test("holds at most 366 days", async t => {
    t.same(range("from=2024-01-01&to=2024-12-31"), { from: "2024-01-01", to: "2024-12-31" })
    t.throws(() => range("from=2025-01-01&to=2026-01-02"), { code: "validation_failed" })
  })

  for (const query of [
    "from=2026-02-30",
    "from=yesterday",
    "to=2026-13-01",
    "from=2026-1-1",
    "from=2026-11-22",
    "from=",
  ]) {
    await t.test(`is refused: ${query}`, async t => {
      t.throws(() => range(query), { code: "validation_failed" })
    })
  }
})

t.test("metrics: how an outcome is labelled", async t => {
  const outcome = (part: Partial<Outcome>) =>
    ({ attempts: [], status: 200, end: "delivered", ...part }) as unknown as Outcome
  t.equal(labelOf(outcome({})), undefined)
  t.equal(labelOf(outcome({ end: "abandoned" })), "client_left")
  t.equal(labelOf(outcome({ end: "refused", status: 429 })), "vendor_rate_limited")
  t.equal(labelOf(outcome({ end: "refused", status: 400 })), "vendor_4xx")
  t.equal(labelOf(outcome({ end: "refused", status: 529 })), "vendor_5xx")
  const attempt = { vendor: "v", secret: "s", status: 0, ms: 1, error: "upstream_timeout" } as const
  t.equal(labelOf(outcome({ end: "broken", attempts: [attempt] })), "vendor_timeout")
})

t.test("metrics: tokens are counted once, in four types", async t => {
  const usage = {
    input: 1,
    audio_input: 2,
    cache_read: 4,
    cache_write_5m: 8,
    cache_write_1h: 16,
    output: 32,
    audio_output: 64,
    image_output: 128,
    reasoning: 30,
  }
  const counts = Object.entries(tokenCounts).map(([type, count]) => [type, count(usage)])
  for (const count of Object.values(tokenCounts)) t.equal(count({ requests: 1 }), 0)
  t.same(Object.fromEntries(counts), { input: 3, cache_read: 4, cache_write: 24, output: 224 })
})
