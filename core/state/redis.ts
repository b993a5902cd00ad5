/** The shared store: many replicas on one Redis, or on a Redis Cluster. The owner of ioredis. */

import { Cluster, Redis } from "ioredis"
import { RedisAccounts } from "./redis/accounts.ts"
import { RedisDirectory } from "./redis/directory.ts"
import { keysOf } from "./redis/keys.ts"
import { type Client, Link } from "./redis/link.ts"
import { answers, clusterServes, serves } from "./redis/probe.ts"
import { redisRecords, redisUsage, redisWindows } from "./redis/records.ts"
import { RedisError } from "./redis/replies.ts"
import { Sweeper } from "./redis/sweeper.ts"
import { Wire } from "./redis/wire.ts"
import type { Store, StoreOptions } from "./store.ts"

export interface RedisOptions extends StoreOptions {
  /** `redis://` or `rediss://`, with user, password and database if need be. */
  readonly url: string
  readonly cluster: boolean
  readonly prefix: string
  /** How long a command may take. */
  readonly deadlineMs: number
  /** False: works beside the gateways (command line), on a replica too. */
  readonly owner?: boolean
  /** False: scripts take the time from `now`, for tests that move it. */
  readonly serverTime?: boolean
}

/** How long the start waits for the first connection; a Redis that comes later is taken when it comes. */
const firstConnectionMs = 1_000
const connectMs = 1_000

/**
 * Opens even while Redis is down: `ready()` tells when calls can be served.
 *
 * @throws Error when the address is none (its text is not told), or when Redis answers and may evict keys
 */
export const openRedis = async (options: RedisOptions): Promise<Store> => {
  const { now, steady = now, onState = () => {}, observe, prefix, owner = true } = options
  const keys = keysOf(prefix)
  const client = connect(options)
  const access = client instanceof Cluster ? manyServers(client) : oneServer(client)
  const link = new Link(access, {
    deadlineMs: options.deadlineMs,
    probe: client instanceof Cluster ? clusterServes : owner ? serves(keys.name) : answers,
    onState,
    ...(observe && { observe }),
  })
  const close = async (): Promise<void> => {
    link.close()
    client.disconnect()
  }
  const refusal = await firstAnswer(client, access, link)
  if (refusal !== undefined) {
    await close()
    throw refusal
  }
  const time = options.serverTime === false ? () => String(now()) : () => ""
  const own = { ...options, steady, time }
  const sweeper = new Sweeper(link, keys, own)
  return {
    kind: "redis",
    directory: new RedisDirectory(link, keys, steady),
    accounts: new RedisAccounts(link, keys, sweeper, own),
    windows: redisWindows(link, keys, time),
    records: redisRecords(link, keys),
    usage: redisUsage(link, keys),
    ready: () => link.up,
    close,
  }
}

/** For ever, soon enough to be back within two seconds, and not all replicas at once. */
const retryDelay = (times: number): number => Math.min(50 * times, 500) * (0.5 + Math.random())

/**
 * A node of a cluster that says nothing for so long is left, and the others are asked who has its keys now: after a
 * failover nobody else tells, as long as the connection to the old master stands.
 */
const silentMs = 1_000
/** An answer from before a failover may name the old master: who has which keys is asked again and again. */
const slotsEveryMs = 5_000
const tryAgainMs = 100

/** Nothing waits in a queue and nothing is sent twice by the client: the verbs decide what is repeated. */
const connection = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: connectMs,
  protocol: 2,
  reconnectOnError: (error: Error) => error.message.startsWith("READONLY"), // on a cluster; else the link does it
} as const

const connect = ({ url, cluster, deadlineMs }: RedisOptions): Redis | Cluster => {
  // Else ioredis takes it for the path of a socket, and its errors name that path with the password in it.
  if (!/^rediss?:\/\//i.test(url) || !URL.canParse(url))
    throw new Error("The address of Redis is not redis://host:port")
  if (cluster && !/^\/?0?$/.test(new URL(url).pathname))
    throw new Error("A Redis Cluster has one database: its address names none")
  if (!cluster) return new Redis(url, { ...connection, enableOfflineQueue: false, retryStrategy: retryDelay })
  return new Cluster([url], {
    clusterRetryStrategy: retryDelay,
    enableOfflineQueue: false,
    slotsRefreshTimeout: connectMs,
    slotsRefreshInterval: slotsEveryMs,
    // What nobody waits for any more must not be done: a hold made after its release would stay for its whole life.
    maxRedirections: Math.max(2, Math.floor(deadlineMs / tryAgainMs) - 1),
    retryDelayOnTryAgain: tryAgainMs,
    retryDelayOnClusterDown: tryAgainMs,
    retryDelayOnFailover: tryAgainMs,
    redisOptions: { ...connection, ...credentials(new URL(url)), socketTimeout: Math.max(silentMs, deadlineMs) },
  })
}

/** How commands leave, and what must be known about the connection for that. */
interface Access extends Client {
  ready(): void
  gone(why: unknown): void
}

/** ioredis makes the connection, and makes it again; as soon as it is ready, its bytes are ours. */
const oneServer = (client: Redis): Access => {
  const away = new Error("Redis is away")
  let wire: Wire | undefined
  return {
    ask: (name, words, asker) => (wire === undefined ? asker.failed(away) : wire.ask(name, words, asker)),
    reconnect: () => client.disconnect(true),
    ready() {
      const { stream } = client
      stream.removeAllListeners("data")
      wire = new Wire(stream, error => stream.destroy(error))
    },
    gone(why) {
      wire?.close(why)
      wire = undefined
    },
  }
}

/** ioredis knows which node has a key, and follows it when it moves. */
const manyServers = (client: Cluster): Access => ({
  ask(name, words, asker) {
    client.call(name, [...words]).then(
      reply => asker.answered(reply),
      error => asker.failed(bare(error)),
    )
  },
  reconnect: () => client.disconnect(true),
  ready() {},
  gone() {},
})

/** For the nodes that the cluster names itself. */
const credentials = ({ username, password, protocol }: URL) => ({
  ...(username && { username: decodeURIComponent(username) }),
  ...(password && { password: decodeURIComponent(password) }),
  ...(protocol === "rediss:" && { tls: {} }),
})

/** Follows the connection for as long as it lives; resolves with the reason for a refusal, if the first answer is one. */
const firstAnswer = (client: Redis | Cluster, access: Access, link: Link): Promise<Error | undefined> =>
  new Promise(resolve => {
    let why: Error | undefined
    const patience = setTimeout(() => {
      link.away(why ?? new Error("Redis does not answer"))
      resolve(undefined)
    }, firstConnectionMs)
    const answer = (refusal?: Error): void => {
      clearTimeout(patience)
      resolve(refusal)
    }
    client.on("error", error => {
      why = bare(error)
      if (why instanceof RedisError) link.refused(why)
    })
    client.on("ready", async () => {
      why = undefined
      const refusal = await refusalOf(client)
      if (refusal === undefined) {
        access.ready()
        await link.connected()
      } else link.refused(refusal)
      answer(refusal instanceof Evicting ? refusal : undefined)
    })
    client.on("close", () => {
      const reason = why ?? new Error("Redis closed the connection")
      link.disconnected(reason)
      access.gone(reason)
      answer()
    })
  })

class Evicting extends Error {}

/** Why what answers is no store for us. */
const refusalOf = async (client: Redis | Cluster): Promise<Error | undefined> => {
  try {
    // ioredis asked for it too, and goes on with database 0 when there is none of that number.
    if (client instanceof Redis && client.options.db) await client.select(client.options.db)
    return await evictionRefusal(client)
  } catch (error) {
    return bare(error)
  }
}

/** A store that evicts loses keys and money without a word. */
const evictionRefusal = async (client: Redis | Cluster): Promise<Error | undefined> => {
  const nodes = client instanceof Cluster ? client.nodes("master") : [client]
  for (const memory of await Promise.all(nodes.map(node => node.info("memory")))) {
    const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
    if (policy === "noeviction") continue
    return new Evicting(`Redis may evict keys (maxmemory-policy ${policy ?? "unknown"}); set it to noeviction`)
  }
  return undefined
}

/** What may be told of an error of ioredis: beside its text it carries the words of the command, AUTH's password too. */
const bare = (error: unknown): Error => {
  const { name, message, code, lastNodeError } = error as Error & {
    readonly code?: string
    readonly lastNodeError?: Error
  }
  if (name === "ReplyError") return new RedisError(message)
  const text = message || code || name // several addresses that all refuse are an error without a text
  return new Error(lastNodeError === undefined ? text : `${text} ${lastNodeError.message}`)
}
