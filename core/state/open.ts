/** Picks the engine that the configuration names. */

import type { Config } from "../catalog/config.ts"
import { openSqlite } from "./sqlite.ts"
import type { Store, StoreOptions } from "./store.ts"

/** A call whose process died gives its credits back after that. */
export const holdLifeMs = 5 * 60_000

export interface OpenOptions extends Omit<StoreOptions, "holdLifeMs"> {
  /** False: works beside the gateways (command line). */
  readonly owner?: boolean
}

/** @throws Error when the store refuses to be opened; a Redis that is only away does not */
export const openStore = async (config: Config["store"], options: OpenOptions): Promise<Store> => {
  if (config.kind === "sqlite")
    return openSqlite({ ...options, holdLifeMs, path: config.path, durability: config.durability })
  const { cluster, prefix, deadlineMs } = config
  const { openRedis } = await import("./redis.ts") // with its client: nothing that the other engine's process should hold
  return openRedis({ ...options, holdLifeMs, url: config.url.reveal(), cluster, prefix, deadlineMs })
}
