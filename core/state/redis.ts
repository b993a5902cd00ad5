/** The shared store: many replicas on one Redis, or on a Redis Cluster. The owner of ioredis. */

import { Cluster, Redis } from "ioredis"
import { RedisAccounts } from "./redis/accounts.ts"
import { RedisDirectory } from "./redis/directory.ts"
import { keysOf } from "./redis/keys.ts"
import { type Client, Link } from "./redis/link.ts"
import { redisRecords, redisUsage, redisWindows } from "./redis/records.ts"
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
  const { now, steady = now, onState = () => {}, observe, prefix, cluster } = options
  const client = connect(options)
  const access = client instanceof Cluster ? manyServers(client) : oneServer(client)
  const link = new Link(access, {
    deadlineMs: options.deadlineMs,
    stopWhenStalled: !cluster,
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
  const keys = keysOf(prefix)
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

const readOnly = "READONLY"

/** Nothing waits in a queue and nothing is sent twice by the client: the verbs decide what is repeated. */
const connection = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: connectMs,
  protocol: 2,
  reconnectOnError: (error: Error) => error.message.startsWith(readOnly),
} as const

const connect = ({ url, cluster }: RedisOptions): Redis | Cluster => {
  // Else ioredis takes it for the path of a socket, and its errors name that path with the password in it.
  if (!/^rediss?:\/\//i.test(url) || !URL.canParse(url))
    throw new Error("The address of Redis is not redis://host:port")
  if (!cluster) return new Redis(url, { ...connection, enableOfflineQueue: false, retryStrategy: retryDelay })
  return new Cluster([url], {
    clusterRetryStrategy: retryDelay,
    enableOfflineQueue: false,
    slotsRefreshTimeout: connectMs,
    redisOptions: { ...connection, ...credentials(new URL(url)) },
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
  const reconnect = (): void => client.disconnect(true)
  return {
    ask: (name, words, asker) => (wire === undefined ? asker.failed(away) : wire.ask(name, words, asker)),
    reconnect,
    ready() {
      const { stream } = client
      stream.removeAllListeners("data")
      wire = new Wire(stream, {
        // After a failover the old master refuses writes; the new one is found by connecting again.
        refused: error => void (error.message.startsWith(readOnly) && reconnect()),
        broken: () => stream.destroy(),
      })
    },
    gone(why) {
      wire?.close(why ?? away)
      wire = undefined
    },
  }
}

/** ioredis knows which node has a key, and follows it when it moves. */
const manyServers = (client: Cluster): Access => ({
  ask(name, words, asker) {
    client.call(name, [...words]).then(
      reply => asker.answered(reply),
      error => asker.failed(error),
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
    let why: unknown
    const patience = setTimeout(() => {
      link.usable(false, why ?? new Error("Redis does not answer"))
      resolve(undefined)
    }, firstConnectionMs)
    const answer = (refusal?: Error): void => {
      clearTimeout(patience)
      resolve(refusal)
    }
    client.on("error", error => {
      why = error
    })
    client.on("ready", async () => {
      const refusal = await evictionRefusal(client)
      if (refusal === undefined) access.ready()
      link.usable(refusal === undefined, refusal)
      answer(refusal instanceof Evicting ? refusal : undefined)
    })
    client.on("close", () => {
      link.usable(false, why)
      access.gone(why)
      answer()
    })
  })

class Evicting extends Error {}

/** A store that evicts loses keys and money without a word. */
const evictionRefusal = async (client: Redis | Cluster): Promise<Error | undefined> => {
  try {
    const nodes = client instanceof Cluster ? client.nodes("master") : [client]
    for (const memory of await Promise.all(nodes.map(node => node.info("memory")))) {
      const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
      if (policy === "noeviction") continue
      return new Evicting(`Redis may evict keys (maxmemory-policy ${policy ?? "unknown"}); set it to noeviction`)
    }
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
