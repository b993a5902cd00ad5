/** Every route without a key, spelled in every odd way; and labels that no client can make. */
import t from "tap"
import { testGateway, testKey } from "../../core/testing.ts"
import { ask, rawClient } from "../fixtures/client.ts"
import { answering } from "../fixtures/vendor.ts"
import { openRelay, wires } from "../fixtures/wires.ts"

/** A number that is always the same for the same seed (mulberry32). */
const randomOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}

const publicStatuses: readonly number[] = [400, 401, 403, 404, 405, 413, 415, 417, 422, 426, 431, 501, 503]

const bent: readonly ((path: string) => string)[] = [
  path => path,
  path => path.replace(/\/$/, ""),
  path => `${path}/`,
  path => path.replace("/v1/", "//v1/"),
  path => path.replace("/v1/", "/v1/./"),
  path => path.replace("/gateway/", "/gateway/../gateway/"),
  path => path.replace("/gateway/", "/gateway%2F"),
  path => path.replace("/gateway/", "/%2e%2e/gateway/"),
  path => `${path}?token=x&key=${testKey}`,
  path => `${path};key=1`,
  path => path.toUpperCase(),
]

/** A path that the pattern takes. */
const filled = (pattern: string): string => pattern.replace(/\{\w+\}/g, "x:generateContent")

t.test("no route does anything without a key, however it is spelled", async t => {
  const gateway = await testGateway()
  t.teardown(() => gateway.close())
  const { host } = new URL(gateway.gateway.url)
  const paths = new Set(gateway.gateway.routes.map(({ path }) => filled(path)))
  t.ok(paths.size > 15, `${paths.size} paths of the router`)
  for (const path of paths) {
    for (const method of ["GET", "POST", "PUT", "DELETE", "HEAD"]) {
      const statuses = await Promise.all(
        bent.map(async bend => {
          const client = await rawClient(t, gateway.gateway.url)
          const target = bend(`/v1/gateway${path}`)
          client.write(`${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nuser-agent: x\r\nconnection: close\r\n\r\n`)
          return Number(/^HTTP\/1\.1 (\d{3})/.exec(await client.closed)?.[1])
        }),
      )
      t.ok(
        statuses.every(status => publicStatuses.includes(status)),
        `${method} ${path}: ${statuses}`,
      )
    }
  }
  t.match(await gateway.balance(), { spent: 0, held: 0 })
})

const badKeys: readonly string[] = [
  "' OR 1=1 --",
  "tg_*",
  "tg_\u0001",
  "*",
  "\r\nGET /",
  "EVAL return 1",
  "../../etc/passwd",
  "__proto__",
  "constructor",
  "%00",
  "x".repeat(12_000),
]

t.test("a key that is no key opens nothing", async t => {
  const relay = await openRelay(t)
  for (const key of badKeys) {
    const client = await rawClient(t, relay.url)
    client.write(
      `GET /v1/gateway/credits/ HTTP/1.1\r\nhost: x\r\nuser-agent: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n\r\n`,
    )
    t.match(await client.closed, /^HTTP\/1\.1 (?:400|401|431) /, JSON.stringify(key.slice(0, 20)))
  }
})

t.test("50,000 random paths, methods, models and fields make no series", async t => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  t.comment(`seed ${seed}`)
  const random = randomOf(seed)
  const word = (): string => Math.floor(random() * 2 ** 52).toString(36)
  const relay = await openRelay(t, answering({ body: wires.messages.whole }))
  const series = async (): Promise<number> =>
    (await relay.metrics()).split("\n").filter(line => line.startsWith("tollgate_")).length
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
  const send = async (count: number): Promise<void> => {
    const client = await rawClient(t, relay.url)
    const requests = Array.from({ length: count }, (_, at) => {
      const fields = `host: x\r\nuser-agent: ${word()}\r\nx-${word()}: ${word()}\r\nauthorization: Bearer ${testKey}\r\n`
      if (at % 4 === 0) {
        const body = JSON.stringify({ model: word(), messages: [{ role: "user", content: "x" }] })
        return `POST /v1/gateway/chat/completions/ HTTP/1.1\r\n${fields}content-length: ${body.length}\r\n\r\n${body}`
      }
      const method = methods[Math.floor(random() * methods.length)]
      return `${method} /${at % 3 === 0 ? "v1/gateway/" : ""}${word()}/${word()} HTTP/1.1\r\n${fields}\r\n`
    })
    client.write(`${requests.join("")}GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    t.equal((await client.closed).match(/HTTP\/1\.1 \d{3} /g)?.length, count + 1)
  }
  /** A method that nobody knows ends its connection. */
  const invent = async (): Promise<void> => {
    const client = await rawClient(t, relay.url)
    client.write(`${word().replace(/\d/g, "X").toUpperCase()} /v1/gateway/models/ HTTP/1.1\r\nhost: x\r\n\r\n`)
    t.match(await client.closed, /^HTTP\/1\.1 (?:400|501) /)
  }
  await ask(relay.url + wires.messages.path(false), wires.messages.request(false))
  await invent()
  for (let round = 0; round < 3; round += 1) await send(500) // the sampled histograms of steps are there then
  const before = await series()
  for (let round = 0; round < 97; round += 1) await send(500)
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 50 }, invent))
  const after = await series()
  t.equal(after, before, "the series of the process itself (kinds of collections) are not ours")
  t.match(await relay.balance(), { held: 0 })
})
