/** The keys of gateway.yaml that describe the process: addresses, store, limits. Defaults are the written ones. */

import { dirname, resolve } from "node:path"
import type { Secret } from "../offer.ts"
import type { Config, LoadOptions } from "./config.ts"
import { type Field, required } from "./field.ts"
import { readSecret, type SecretSource } from "./secret.ts"

type Fields = ReadonlyMap<string, Field>

const port = { least: 0, most: 65_535 }
const count = { least: 1, most: 1_000_000 }

export const readListen = (field: Field | undefined, options: LoadOptions, top: Field): Config["listen"] => {
  const fields = field?.fields(["host", "port"])
  return {
    host: fields?.get("host")?.string("a host name or address") ?? "127.0.0.1",
    port: options.overrides?.port ?? portOfEnvironment(options, top) ?? fields?.get("port")?.integer(port) ?? 8787,
  }
}

const portOfEnvironment = ({ env }: LoadOptions, top: Field): number | undefined => {
  const text = env?.PORT
  if (text === undefined || text === "") return undefined
  const fits = /^\d{1,5}$/.test(text) && Number(text) <= port.most
  return fits
    ? Number(text)
    : top.problem(`expected a port in the environment variable PORT, found ${JSON.stringify(text.slice(0, 40))}`)
}

export const readOps = (field: Field | undefined, options: LoadOptions, source: SecretSource): Config["ops"] => {
  const fields = field?.fields(["host", "port", "token"])
  const host = fields?.get("host")?.string("a host name or address") ?? "127.0.0.1"
  const written = fields?.get("token")
  const token: Secret | undefined = written === undefined ? undefined : readSecret(written, source)
  if (written === undefined && !isLoopback(host)) {
    field?.problem("token is missing: metrics on another host than loopback need one, { env: NAME }")
  }
  return {
    host,
    port: options.overrides?.opsPort ?? fields?.get("port")?.integer(port) ?? 8788,
    ...(token === undefined ? {} : { token }),
  }
}

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)

export const readBasePath = (field: Field | undefined): string =>
  field?.string("a path such as /v1/gateway", /^(\/[A-Za-z0-9._~-]*[A-Za-z0-9_~-])+$/) ?? "/v1/gateway"

export const readTimezone = (field: Field | undefined): string => {
  const name = field?.string("an IANA time zone")
  if (name === undefined) return "Asia/Seoul"
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone
  } catch {
    field?.expected("an IANA time zone such as Asia/Seoul")
    return name
  }
}

export const readStore = (field: Field | undefined, file: string, source: SecretSource): Config["store"] => {
  const written = field?.fields().get("kind")
  const kind = written === undefined ? "sqlite" : written.choice(["sqlite", "redis"])
  return kind === "redis" && field !== undefined ? readRedis(field, source) : readSqlite(field, file, kind)
}

const readSqlite = (field: Field | undefined, file: string, kind: string | undefined): Config["store"] => {
  const fields: Fields | undefined = kind === undefined ? undefined : field?.fields(["kind", "path", "durability"])
  const path = fields?.get("path")?.string("the path of a file") ?? "../data/tollgate.db"
  return {
    kind: "sqlite",
    path: path === ":memory:" ? path : resolve(dirname(file), path),
    durability: fields?.get("durability")?.choice(["power", "process"]) ?? "power",
  }
}

const readRedis = (field: Field, source: SecretSource): Config["store"] => {
  const fields = field.fields(["kind", "url", "cluster", "prefix", "deadline"])
  const written = required(field, fields, "url")
  const url = written === undefined ? undefined : readSecret(written, source)
  // The value is never echoed: it may hold a password.
  if (url !== undefined && !isRedisAddress(url.reveal()))
    written?.problem("expected the address of a Redis, such as redis://user:password@host:6379/0 or rediss://...")
  return {
    kind: "redis",
    url: url ?? noSecret,
    cluster: fields.get("cluster")?.boolean() ?? false,
    prefix: fields.get("prefix")?.string("a short plain word", /^[A-Za-z0-9_-]{1,32}$/) ?? "tollgate",
    deadlineMs: fields.get("deadline")?.duration() ?? 400,
  }
}

/** Anything else would be taken for a socket's path and appear in every connection error, password included. */
const isRedisAddress = (text: string): boolean => {
  if (!/^rediss?:\/\//i.test(text) || !URL.canParse(text)) return false
  const { hostname, username, password } = new URL(text)
  return hostname !== "" && [username, password].every(isDecodable)
}

const isDecodable = (part: string): boolean => {
  try {
    return decodeURIComponent(part) !== undefined
  } catch {
    return false
  }
}

/** Stands for a secret whose absence was reported: the load fails anyway. */
const noSecret: Secret = { name: "missing", reveal: () => "" }

export const readLimits = (field: Field | undefined): Config["limits"] => {
  const fields = field?.fields(["bodies_in_memory", "connections", "step"])
  return {
    bodiesInMemoryBytes: fields?.get("bodies_in_memory")?.size() ?? 256 * 1024 * 1024,
    connections: fields?.get("connections")?.integer(count) ?? 10_000,
    stepMs: fields?.get("step")?.duration() ?? 10_000,
  }
}

export const readUpstream = (field: Field | undefined): Config["upstream"] => {
  const fields = field?.fields(["connections", "drain"])
  const drain = fields?.get("drain")?.fields(["count", "time", "bytes"])
  return {
    connections: fields?.get("connections")?.integer(count) ?? 4_096,
    drain: {
      count: drain?.get("count")?.integer({ least: 0, most: count.most }) ?? 256,
      timeMs: drain?.get("time")?.duration() ?? 10_000,
      bytes: drain?.get("bytes")?.size() ?? 8 * 1024 * 1024,
    },
  }
}
