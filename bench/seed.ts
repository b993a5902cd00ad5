/** Fills a store with the members of the bench. `node bench/seed.ts sqlite <path>` or `... redis <url>`. */

import { createHash } from "node:crypto"
import { openRedis } from "../core/state/redis.ts"
import { openSqlite } from "../core/state/sqlite.ts"
import type { Store, StoreOptions } from "../core/state/store.ts"
import { keyOf, members } from "./requests.ts"

const options: StoreOptions = {
  now: () => Date.now(),
  day: at => new Date(at).toISOString().slice(0, 10),
  holdLifeMs: 300_000,
}

const open = (kind: string, place: string): Promise<Store> =>
  kind === "redis"
    ? openRedis({ ...options, url: place, cluster: false, prefix: "tollgate", deadlineMs: 5_000 })
    : openSqlite({ ...options, path: place, durability: "process" })

const organisation = "bench"
/** A million credits each: no call is refused for want of them. */
const micros = 1e12
const atOnce = 500

const addMember = async ({ directory, accounts }: Store, number: number): Promise<void> => {
  const member = { organisation, member: `m${number}` }
  const digest = createHash("sha256").update(keyOf(number)).digest("hex")
  await directory.createMember(member)
  await directory.createKey({ ...member, id: `key-${number}`, name: "", state: "valid", createdAt: 0 }, digest)
  await accounts.grant(`grant-${number}`, member, micros, "bench")
}

const [kind = "", place = ""] = process.argv.slice(2)
const store = await open(kind, place)
await store.directory.createOrganisation({ name: organisation, title: "", gateway: true, models: "all", disabled: [] })
for (let first = 0; first < members; first += atOnce) {
  await Promise.all(Array.from({ length: atOnce }, (_, at) => addMember(store, first + at)))
}
await store.close()
