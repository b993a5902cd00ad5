import t from "tap"
import type { Plugin } from "../../core/index.ts"
import { testClock } from "../../core/testing.ts"
import { bearer, keys, openProduct, productCatalog } from "../fixtures/product.ts"

const request = { model: "gpt", messages: [{ role: "user", content: "hi" }], max_tokens: 100 }
type Tree = Record<string, unknown>

t.test("keys", async t => {
  await t.test("revoke themselves, at once and for ever", async t => {
    const product = await openProduct(t)
    const own = bearer(keys.second)
    const answer = await product.call("/keys/revoke/", undefined, { method: "POST", ...own })
    t.equal(answer.status, 200)
    t.match(await answer.json(), { object: "key", id: String, state: "revoked" })
    const after = await product.call("/credits/", undefined, own)
    t.equal(after.status, 401)
    t.equal(after.headers.get("www-authenticate"), "Bearer")
    t.match(await after.json(), { detail: "This API key has been revoked. Create a new key in the console." })
    t.equal((await product.call("/credits/")).status, 200, "the member's other key lives")
  })

  await t.test("that are disabled say so, and work again when they are enabled", async t => {
    const product = await openProduct(t)
    const { directory } = product.gateway.parts.store
    const [key] = (await directory.keys("acme")).filter(one => one.member === "alice")
    for (const one of await directory.keys("acme")) await directory.changeKey(one.id, "disabled")
    const refused = await product.call("/credits/")
    t.equal(refused.status, 401)
    t.match(await refused.json(), {
      detail: "This API key is disabled. Turn it back on in the console, or use another key.",
    })
    for (const one of await directory.keys("acme")) await directory.changeKey(one.id, "valid")
    t.equal((await product.call("/credits/")).status, 200)
    t.ok(key)
  })

  await t.test("are taken from x-api-key everywhere, from the SDK's own header on its routes only", async t => {
    const product = await openProduct(t)
    const status = async (path: string, headers: Record<string, string>) =>
      (await fetch(product.url + path, { headers })).status
    t.equal(await status("/credits/", { "x-api-key": keys.alice }), 200)
    t.equal(await status("/google/v1beta/models", { "x-goog-api-key": keys.alice }), 200)
    t.equal(await status("/credits/", { "x-goog-api-key": keys.alice }), 401)
    t.equal(await status(`/credits/?key=${keys.alice}`, {}), 401)
  })

  await t.test("never stand in the log", async t => {
    const product = await openProduct(t)
    await (await product.call("/chat/completions/", request)).text()
    await (await product.call("/credits/", undefined, bearer("tg_some_other_key"))).text()
    const log = JSON.stringify(product.lines)
    for (const secret of [keys.alice, "tg_some_other_key", "secret-of-the-vendor"]) t.notMatch(log, secret)
  })
})

t.test("rate limits", async t => {
  const limited = (clock = testClock()) => ({
    clock,
    gateway: { plugins: ["auth", { "rate-limit": { common: { requests: 2, window: "60s" } } }, "model", "pricing"] },
  })

  await t.test("count the member, not the key, and tell the truth about waiting", async t => {
    const clock = testClock()
    const product = await openProduct(t, limited(clock))
    const ask = (key: string) => product.call("/credits/", undefined, bearer(key))
    const first = await ask(keys.alice)
    t.same(
      ["limit", "remaining", "reset"].map(name => first.headers.get(`ratelimit-${name}`)),
      ["2", "1", "60"],
    )
    await clock.advance(10_500)
    t.equal((await ask(keys.second)).status, 200)
    const refused = await ask(keys.alice)
    t.equal(refused.status, 429)
    t.match(await refused.json(), { detail: "Rate limit exceeded" })
    t.equal(refused.headers.get("retry-after"), "50", "49.5 seconds, rounded up")
    t.equal(refused.headers.get("ratelimit-remaining"), "0")
    t.equal((await ask(keys.poor)).status, 200, "another member is not concerned")
    await clock.advance(49_000)
    t.equal((await ask(keys.alice)).status, 429, "half a second too early")
    await clock.advance(1_000)
    t.equal((await ask(keys.alice)).status, 200, "the promised time passes")
    t.equal((await ask(keys.alice)).status, 429, "one call passes, not two")
    t.match(await product.metrics(), 'tollgate_rate_limited_total{bucket="common"} 3\n')
  })

  await t.test("never name a time beyond the window, though steady time has fractions", async t => {
    const product = await openProduct(t, limited({ ...testClock(), steady: () => 6000.1 }))
    for (const status of [200, 200, 429]) {
      const answer = await product.call("/credits/")
      t.equal(answer.status, status)
      t.equal(answer.headers.get("ratelimit-reset"), "60")
      t.equal(answer.headers.get("retry-after"), status === 429 ? "60" : null)
    }
  })

  await t.test("count each bucket apart", async t => {
    const requests = (count: number) => ({ requests: count, window: "60s" })
    const limits = { "rate-limit": { common: requests(1), polling: requests(2) } }
    const jobs: Plugin = {
      name: "jobs",
      api: 1,
      setup: host =>
        host.route({
          method: "GET",
          path: "/jobs/",
          access: "key",
          dialect: "plain",
          model: "none",
          charge: "none",
          limit: "polling",
          handle: call => call.reply(200, {}),
        }),
    }
    const product = await openProduct(t, {
      gateway: { plugins: ["auth", limits, "model", "pricing"] },
      plugins: [jobs],
    })
    const statuses = async (path: string, times: number) => {
      const answers = []
      for (let at = 0; at < times; at += 1) answers.push((await product.call(path)).status)
      return answers
    }
    t.same(await statuses("/credits/", 2), [200, 429])
    t.same(await statuses("/jobs/", 3), [200, 200, 429])
  })

  await t.test("of reservations have a code and no promise", async t => {
    const plugins = ["auth", "model", { pricing: { reservations: { requests: 1, window: "60s" } } }]
    const product = await openProduct(t, { gateway: { plugins } })
    t.equal((await product.call("/chat/completions/", request)).status, 200)
    const refused = await product.call("/chat/completions/", request)
    t.equal(refused.status, 429)
    t.equal(refused.headers.get("retry-after"), null)
    const message = "Too many reservation requests. Please try again later."
    t.match(await refused.json(), { detail: { code: 6005, message } })
  })

  await t.test(
    "stop the start when a route names a bucket that nobody has; a route without a limit has none",
    async t => {
      const { default: rateLimit } = await import("../../plugins/rate-limit.ts")
      let on: ((route: never) => boolean) | undefined
      const host = {
        metrics: { product: () => ({ child: () => ({}) }) },
        use: (step: { on: typeof on }) => (on = step.on),
      }
      rateLimit.setup(host as never, { common: { requests: 1, window: "1s" } })
      const limits = (route: object): boolean => on!({ access: "key", limit: "common", path: "/x/", ...route } as never)
      t.throws(() => limits({ limit: "nothing" }), /the route \/x\/ names the bucket nothing/)
      t.same([limits({}), limits({ limit: "none" }), limits({ access: "public" })], [true, false, false])
    },
  )
})

t.test("the metrics tell a call's class and seconds, no more of them than its client waited", async t => {
  const product = await openProduct(t)
  const began = performance.now()
  await (await product.call("/credits/")).text()
  const waited = (performance.now() - began) / 1000
  const ofRoute = 'route="/credits/",status_class="2xx"'
  const value = new RegExp(`^tollgate_http_request_duration_seconds_(sum|count)\\{${ofRoute}\\} (.*)$`, "gm")
  const told = Object.fromEntries(
    [...(await product.metrics()).matchAll(value)].map(([, name, number]) => [name, number]),
  )
  t.equal(told.count, "1")
  t.ok(Number(told.sum) > 0 && Number(told.sum) <= waited, `${told.sum} of ${waited}`)
})

t.test("money", async t => {
  await t.test("a call is settled by what the vendor reported, and the answer says so", async t => {
    const product = await openProduct(t)
    const answer = await product.call("/chat/completions/", request)
    t.equal(answer.headers.get("x-credits-charged"), "0.05", "10 tokens of 1,000 micros, 20 of 2,000")
    await answer.text()
    const credits = (await (await product.call("/credits/")).json()) as Tree
    t.same(credits, { object: "credit_balance", balance: 999.95, held: 0, available: 999.95, unit: "credits" })
  })

  await t.test("while a call runs its hold is the estimate and the allowance, no more", async t => {
    const product = await openProduct(t)
    let held = 0
    product.vendor.answer = async (_, response) => {
      held = (await product.balance()).held
      response.writeHead(500).end("{}")
    }
    const text = "x".repeat(30)
    const messages = [
      {
        role: "user",
        content: [
          { type: "text", text },
          { type: "image_url", image_url: { url: "https://e.org/a.png" } },
        ],
      },
    ]
    await (await product.call("/chat/completions/", { ...request, messages, n: 2 })).text()
    const scanned = [text, "user", "text", "image_url", "https://e.org/a.png", "gpt"].join("").length
    const input = Math.ceil(scanned / 3) + 1600
    t.equal(held, input * 1_000 + 2 * 100 * 2_000)
    t.match(await product.balance(), { held: 0, spent: 0 }, "a vendor's failure costs nothing")
  })

  await t.test("usage is told by model, day, key, kind and route", async t => {
    const product = await openProduct(t)
    for (const key of [keys.alice, keys.second])
      await (await product.call("/chat/completions/", request, bearer(key))).text()
    const usage = async (query: string) => (await (await product.call(`/usage/?${query}`)).json()) as Tree
    const sums = {
      requests: 1,
      credits: 0.05,
      input_tokens: 10,
      output_tokens: 20,
      cached_tokens: 0,
      seconds: 0,
      images: 0,
    }
    t.match(await usage(""), { object: "usage", timezone: "Asia/Seoul", by: "model", scope: "key", total: sums })
    t.same((await usage("")).data, [{ model: "gpt", ...sums }])
    t.match(await usage("by=route"), { data: [{ route: "/chat/completions/" }] })
    t.match(await usage("by=kind"), { data: [{ kind: "llm" }] })
    t.match(await usage("by=day&scope=member"), { data: [{ day: /^\d{4}-\d\d-\d\d$/, requests: 2, credits: 0.1 }] })
    t.equal(((await usage("by=key&scope=member")).data as Tree[]).length, 2)
    t.match(await usage("from=2020-01-01&to=2020-01-31"), { data: [], total: { requests: 0, credits: 0 } })
  })
})

t.test("models", async t => {
  const product = await openProduct(t)
  const get = async (path: string) => (await (await product.call(path)).json()) as Tree & { data: Tree[] }

  await t.test("are listed, texts first, without those that this organisation may not use", async t => {
    const { object, data } = await get("/models/")
    t.equal(object, "list")
    t.same(
      data.map(one => one.id),
      ["gpt", "gpt-shared", "claude", "gemini", "codex", "cool", "unpriced", "picture", "vectors"],
    )
    t.match(data[0], { object: "model", created: Number, owned_by: "openai", type: "llm", family: "openai" })
    t.same(
      (await get("/models/?type=embedding,image")).data.map(one => one.id),
      ["picture", "vectors"],
    )
  })

  await t.test("stay on or off for an organisation when the catalog gives them another name", async t => {
    const { gpt, claude } = productCatalog.models
    const renamed = await openProduct(t, { catalog: { models: { gpt, claude } } })
    const { directory } = renamed.gateway.parts.store
    const listed = async () =>
      ((await (await renamed.call("/models/")).json()) as { data: Tree[] }).data.map(one => one.id)
    t.same(await renamed.reload({ catalog: { models: { newer: gpt, claude }, aliases: { gpt: "newer" } } }), [])
    await directory.changeOrganisation("acme", () => ({ models: "all", disabled: ["gpt"] }))
    t.same(await listed(), ["claude"])
    for (const model of ["gpt", "newer"]) {
      const answer = await renamed.call("/chat/completions/", { model, messages: [{ role: "user", content: "hi" }] })
      t.match(await answer.json(), { detail: `invalid_request_error - Model '${model}' not found` })
    }
    await directory.changeOrganisation("acme", () => ({ models: ["gpt"], disabled: [] }))
    t.same(await listed(), ["newer"])
  })

  await t.test("have a detail with parameters, price and aliases, also by an old name", async t => {
    t.match(await get("/models/old-gpt/"), {
      id: "gpt",
      object: "model",
      description: "A model",
      context_window: 8000,
      max_output_tokens: 1000,
      parameters: { type: "object" },
      price: {
        unit: "credits",
        lines: [
          { item: "input", credits: 0.001 },
          { item: "output", credits: 0.002 },
        ],
      },
      aliases: ["old-gpt"],
    })
  })

  await t.test("have a list in each native family's format", async t => {
    const own = await get("/anthropic/v1/models?limit=1")
    t.match(own, {
      data: [{ type: "model", id: "claude", created_at: /Z$/ }],
      has_more: true,
      first_id: "claude",
      last_id: "claude",
    })
    const next = await get("/anthropic/v1/models?after_id=claude")
    t.match(next, { data: [{ id: "gpt-shared" }], has_more: false })
    t.match(await get("/anthropic/v1/models?before_id=gpt-shared"), { data: [{ id: "claude" }], has_more: false })
    const pages = await Promise.all(
      ["?pageSize=1", "?pageSize=0", "?pageSize=999999999", ""].map(query => get(`/google/v1beta/models${query}`)),
    )
    for (const page of pages) t.match(page, { models: [{ name: "models/gemini" }], nextPageToken: undefined })
    t.match(await get("/google/v1beta/models"), {
      models: [
        {
          name: "models/gemini",
          outputTokenLimit: 1000,
          supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
        },
      ],
    })
  })
})

t.test(
  "an overlay that left the catalog with a reload stops its organisation's calls: the list's prices are others",
  async t => {
    const product = await openProduct(t)
    const own = { price: { input: "1 per 1M tokens", output: "1 per 1M tokens" } }
    const charged = async () => {
      const answer = await product.call("/chat/completions/", request)
      return [answer.status, answer.headers.get("x-credits-charged")]
    }
    const [status, list] = await charged()
    t.equal(status, 200)
    t.same(await product.reload({ catalog: { ...productCatalog, overlays: { partner: { gpt: own } } } }), [])
    const { directory } = product.gateway.parts.store
    await directory.changeOrganisation("acme", () => ({ overlay: "partner" }))
    const [, partner] = await charged()
    t.ok(Number(partner) < Number(list) / 500, `${partner} instead of ${list}`)
    t.same(await product.reload({ catalog: productCatalog }), [])
    const before = await product.available()
    t.same(await charged(), [500, null])
    t.equal(await product.available(), before)
    t.match(
      product.lines.find(({ code }) => code === "price_missing"),
      { cause: /the catalog has no overlay partner, whose prices organisation acme has/ },
    )
  },
)
