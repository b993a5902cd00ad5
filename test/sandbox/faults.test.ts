import { once } from "node:events"
import { request } from "node:http"
import t, { type Test } from "tap"
import { testGateway } from "../../core/testing.ts"
import { startSandbox } from "../../plugins/sandbox/index.ts"
import { openSandbox, refusalOf } from "./helpers.ts"

const body = { model: "m", messages: [{ role: "user", content: "Count to 50" }] }

const ask = (origin: string, fault: string, more: object = {}): Promise<Response> =>
  fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer sandbox", "x-sandbox-fault": fault },
    body: JSON.stringify({ ...body, ...more }),
  })

const textOf = async (t: Test, fault: string, more: object = {}): Promise<string> => {
  const { origin } = await openSandbox(t)
  return (await ask(origin, fault, more)).text()
}

t.test("429 and 500 are the vendor's own errors", async t => {
  const { origin } = await openSandbox(t)
  const busy = await ask(origin, "429")
  t.equal(busy.status, 429)
  t.equal(busy.headers.get("retry-after"), "1")
  t.match(await busy.json(), { error: { type: "requests", code: "rate_limit_exceeded", param: null } })
  const failed = await ask(origin, "500", { stream: true })
  t.equal(failed.status, 500)
  t.match(await failed.json(), { error: { type: "server_error" } })
})

t.test("behind a gateway a fault is still the vendor's, not taken for our account's", async t => {
  const gateway = await testGateway()
  t.teardown(() => gateway.close())
  const told = async (fault: string): Promise<Response> =>
    gateway.call("/chat/completions/", { ...body, model: "test-chat" }, { headers: { "x-sandbox-fault": fault } })
  const busy = await told("429")
  t.equal(busy.status, 429)
  t.equal(busy.headers.get("retry-after"), "1")
  t.notMatch(await (await told("500")).text(), /account/)
  t.match(await gateway.balance(), { spent: 0, held: 0 })
})

t.test("refuse ends the connection without an answer, and the next one is served", async t => {
  const { origin } = await openSandbox(t)
  t.match(await refusalOf(ask(origin, "refuse")), { cause: { code: /UND_ERR_SOCKET|ECONNRESET/ } })
  t.equal((await ask(origin, "none of these")).status, 200)
})

t.test("die ends a whole answer and a stream in the middle", async t => {
  const { origin } = await openSandbox(t)
  const whole = await ask(origin, "die")
  t.equal(whole.status, 200)
  t.match(await refusalOf(whole.text()), Error)
  const stream = await ask(origin, "die", { stream: true })
  let seen = ""
  const read = async (): Promise<void> => {
    for await (const chunk of stream.body!) seen += Buffer.from(chunk).toString()
  }
  t.match(await refusalOf(read()), Error)
  t.match(seen, /"content":"1,"/)
  t.notMatch(seen, /finish_reason":"stop"|\[DONE\]/)
})

t.test("drip changes no byte", async t => {
  const plain = await textOf(t, "none", { stream: true })
  const dripped = await textOf(t, "drip", { stream: true })
  t.equal(dripped.replace(/"created":\d+/g, ""), plain.replace(/"created":\d+/g, ""))
})

t.test("stall never answers, and closing ends it", async t => {
  const sandbox = await startSandbox({ pauseMs: 0 })
  const asking = request(`${sandbox.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-sandbox-fault": "stall" },
  })
  asking.end("{}")
  asking.once("response", () => t.fail("a stalled call was answered"))
  await once(asking, "socket")
  const [error] = await Promise.all([once(asking, "error"), once(asking, "finish").then(() => sandbox.close())])
  t.match(error, [{ code: /ECONNRESET|ECONNREFUSED/ }])
})

t.test("an unknown path and method are 404", async t => {
  const { origin } = await openSandbox(t)
  for (const path of ["/v1/nothing", "/v1/chat/completions/", "/"]) {
    t.equal((await fetch(origin + path, { method: "POST", body: "{}" })).status, 404, path)
  }
  t.equal((await fetch(`${origin}/v1/chat/completions`)).status, 404)
})

t.test("the same seed gives the same bytes", async t => {
  const texts = await Promise.all(
    [1, 1, 2].map(async seed => {
      const sandbox = await startSandbox({ seed, pauseMs: 0 })
      t.teardown(() => sandbox.close())
      return (await (await ask(sandbox.origin, "none")).text()).replace(/"created":\d+/, "")
    }),
  )
  t.equal(texts[0], texts[1])
  t.not(texts[0], texts[2])
})
