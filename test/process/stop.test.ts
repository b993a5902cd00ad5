import { writeFileSync } from "node:fs"
import { join } from "node:path"
import t from "tap"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Balance } from "../../core/state/store.ts"
import { dayOf, life } from "../fixtures/store-contract.ts"
import { type GatewayProcess, memberKey, processPlugins, type Site } from "./gateway-process.ts"
import { ledgerFindings, right, serve, siteOf } from "./serve.ts"

const streams = 200
const few = 50

interface Stream {
  readonly id: string
  /** The rest of its text; rejects when it is cut. */
  readonly rest: Promise<string>
}

/** Resolves with the stream's first byte. */
const open = async ({ url }: GatewayProcess, numbers: number): Promise<Stream> => {
  const answer = await fetch(`${url}/chat/completions/`, {
    method: "POST",
    headers: { authorization: `Bearer ${memberKey(1)}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt", stream: true, messages: [{ role: "user", content: `Count to ${numbers}` }] }),
  })
  const reader = answer.body!.getReader()
  await reader.read()
  return { id: answer.headers.get("x-request-id") ?? "", rest: restOf(reader) }
}

const restOf = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += decoder.decode(next.value)
  return text
}

const afterwards = async (
  site: Site,
): Promise<{ readonly balance: Balance; readonly charged: ReadonlySet<string> }> => {
  const path = join(site.folder, "tollgate.db")
  const store = await openSqlite({ path, durability: "process", now: Date.now, day: dayOf, holdLifeMs: life })
  const alice = { organisation: "acme", member: "alice" }
  const rows = await store.accounts.entries(alice, { after: 0, limit: 1_000 })
  const balance = await store.accounts.balance(alice)
  await store.close()
  return { balance, charged: new Set(rows.filter(({ kind }) => kind === "charge").map(({ id }) => id)) }
}

t.test("told to stop under 200 streams, it refuses new calls, lets them end, settles all and ends with 0", async t => {
  const site = siteOf(t, { shutdown: "60s" })
  const gateway = await serve(t, site)
  const all = await Promise.all(Array.from({ length: streams }, () => open(gateway, 40)))
  gateway.signal("SIGTERM")
  const ended = await Promise.allSettled(all.map(({ rest }) => rest))
  t.equal(ended.filter(one => one.status === "fulfilled" && one.value.endsWith("data: [DONE]\n\n")).length, streams)
  const late = await fetch(`${gateway.url}/models/`).then(
    answer => answer.status,
    () => "refused",
  )
  t.ok(late === 503 || late === "refused", String(late))
  t.equal(await gateway.ended, 0)
  t.same(gateway.complaints, [])
  const { balance, charged } = await afterwards(site)
  t.same(
    all.filter(({ id }) => !charged.has(id)),
    [],
  )
  t.equal(balance.held, 0)
  t.same(await ledgerFindings(site), right)
})

t.test("streams that outlast the time to stop end with an error event and are charged for what came", async t => {
  const site = siteOf(t, { shutdown: "1s" })
  const gateway = await serve(t, site)
  const all = await Promise.all(Array.from({ length: few }, () => open(gateway, 3_000)))
  gateway.signal("SIGTERM")
  const ended = await Promise.allSettled(all.map(({ rest }) => rest))
  t.equal(ended.filter(one => one.status === "fulfilled" && /"error":\{/.test(one.value)).length, few)
  t.equal(await gateway.ended, 0)
  t.same(gateway.complaints, [])
  const { balance, charged } = await afterwards(site)
  t.equal(charged.size, few)
  t.equal(balance.held, 0)
  t.same(await ledgerFindings(site), right)
})

/** Throws, or rejects, where no call waits for it. */
const stray = `export default {
  name: "stray",
  api: 1,
  setup: host => host.use({
    run: (call, next) => {
      const mode = call.headers["x-stray"]
      if (mode === "throw") setTimeout(() => { throw new Error("nobody catches this") }, 10)
      if (mode === "reject") setTimeout(() => void Promise.reject(new Error("nobody catches this")), 10)
      return next()
    },
  }),
}
`

for (const mode of ["throw", "reject"]) {
  t.test(`a plugin that fails outside any call (${mode}) ends the process with 1, after a drain`, async t => {
    const site = siteOf(t, { shutdown: "60s", plugins: ["./stray.mjs", ...processPlugins] })
    writeFileSync(join(site.folder, "stray.mjs"), stray)
    const gateway = await serve(t, site)
    const { id, rest } = await open(gateway, 40)
    await fetch(`${gateway.url}/models/`, { headers: { "x-stray": mode } })
    t.match(await rest, /data: \[DONE\]\n\n$/, "the stream that was under way came to its end")
    t.equal(await gateway.ended, 1)
    t.match(gateway.complaints.join("\n"), /nobody catches this.*draining, then ending/)
    const { balance, charged } = await afterwards(site)
    t.ok(charged.has(id))
    t.equal(balance.held, 0)
  })
}

t.test("a second signal does not wait", async t => {
  const gateway = await serve(t, siteOf(t, { shutdown: "60s" }))
  const { rest } = await open(gateway, 3_000)
  gateway.signal("SIGTERM")
  const refused = async (): Promise<void> => {
    // What comes within a second of the first is its echo.
    while (gateway.child.exitCode === null) {
      gateway.signal("SIGTERM")
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
  await Promise.all([refused(), t.rejects(rest)])
  t.equal(await gateway.ended, 130)
})
