/** What tests with gateway processes share: a site and its processes, ended with the test; calls and what they cost. */

import type { Test } from "tap"
import {
  type GatewayProcess,
  makeSite,
  memberKey,
  processCatalog,
  processGateway,
  type Site,
  type StartOptions,
  startGatewayProcess,
  type Tree,
  tollgate,
} from "./gateway-process.ts"

export const siteOf = (t: Test, change: Tree = {}, catalog: Tree = processCatalog): Site => {
  const site = makeSite(processGateway(change), catalog)
  t.teardown(() => site.remove())
  return site
}

export const serve = async (t: Test, site: Site, options: StartOptions = {}): Promise<GatewayProcess> => {
  const gateway = await startGatewayProcess(site.file, options)
  t.teardown(() => gateway.kill())
  return gateway
}

/** The Redis of the test, as gateway.yaml names it. */
export const redisStore = (more: Tree = {}): Tree => ({
  store: { kind: "redis", url: { env: "REDIS_URL" }, prefix: "t", deadline: "1s", ...more },
})

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** What `x-credits-charged` says. */
  readonly micros: number
}

export interface CallOptions {
  readonly key?: string
  readonly body?: unknown
  readonly method?: string
}

/** Rejects when the connection ends without a whole answer. */
export const call = async (
  { url }: { readonly url: string },
  path: string,
  { key = memberKey(1), body, method }: CallOptions = {},
): Promise<Answered> => {
  const answer = await fetch(url + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  const micros = Math.round(Number(answer.headers.get("x-credits-charged") ?? 0) * 1_000_000)
  return { status: answer.status, headers: answer.headers, text, micros }
}

/** A chat on the simulated vendor. */
export const chat = (gateway: { readonly url: string }, more: object = {}, options: CallOptions = {}) =>
  call(gateway, "/chat/completions/", {
    ...options,
    body: { model: "gpt", max_tokens: 100, messages: [{ role: "user", content: "Count to 9" }], ...more },
  })

/** Money and identity fail closed: 503, when to come again, never 401, nothing of the cause. */
export const closed = (t: Test, { status, headers, text }: Answered): void => {
  t.equal(status, 503)
  t.match(headers.get("retry-after"), /^[1-9]\d*$/)
  t.notMatch(text, /redis|sqlite|database|disk|locked|ECONN|127\.0\.0\.1/i)
}

export interface Credits {
  readonly balance: number
  readonly held: number
  readonly available: number
}

export const credits = async (gateway: { readonly url: string }, key?: string): Promise<Credits> =>
  JSON.parse((await call(gateway, "/credits/", key === undefined ? {} : { key })).text) as Credits

/** What `tollgate ledger check` finds beside running gateways. */
export const ledgerFindings = async (site: Site, env: StartOptions["env"] = {}): Promise<unknown> => {
  const { text } = await tollgate(site.file, ["ledger", "check"], env)
  const { right, findings } = JSON.parse(text) as Readonly<Record<string, unknown>>
  return { right, findings }
}

export const right = { right: true, findings: [] }

/** How many of each. */
export const countBy = <T>(all: readonly T[], name: (one: T) => string | number): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const one of all) counts[name(one)] = (counts[name(one)] ?? 0) + 1
  return counts
}
