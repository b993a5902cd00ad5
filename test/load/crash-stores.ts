/** The crash runs of both stores, and what must be true when all holds of the dead have lapsed. */

import { join } from "node:path"
import { openRedis } from "../../core/state/redis.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Balance, Store } from "../../core/state/store.ts"
import { makeSite, processGateway, type Site } from "../process/gateway-process.ts"
import { type CrashOptions, type CrashReport, crash } from "./crash.ts"

const life = 300_000
const day = (at: number): string => new Date(at).toISOString().slice(0, 10)

export type Asked = Pick<CrashOptions, "points" | "seed" | "onPoint">

export const crashOnSqlite = async (asked: Asked): Promise<CrashReport> =>
  within(makeSite(), site => {
    const path = join(site.folder, "tollgate.db")
    const open = () => openSqlite({ path, durability: "process", now: Date.now, day, holdLifeMs: life })
    return crash({ ...asked, site, open, holdsStay: false })
  })

export const crashOnRedis = async (url: string, asked: Asked): Promise<CrashReport> => {
  const prefix = "crash"
  const shared = { url, cluster: false, prefix, deadlineMs: 5_000, day, holdLifeMs: life }
  const store = { kind: "redis", url: { env: "REDIS_URL" }, prefix, deadline: "5s" }
  return within(makeSite(processGateway({ store })), async site => {
    const open = () => openRedis({ ...shared, now: Date.now })
    const report = await crash({ ...asked, site, open, holdsStay: true, env: { REDIS_URL: url } })
    // A life later, for a sweeper that is told the time.
    const later = await openRedis({ ...shared, now: () => Date.now() + life + 1_000, serverTime: false })
    const { held, available, granted, spent } = await sweptBalance(later)
    if (held !== 0) report.wrong.push(`${held} micros are still held a life after the last crash`)
    if (available !== granted - spent) report.wrong.push(`${available} available of ${granted} less ${spent}`)
    return report
  })
}

const sweptBalance = async (store: Store): Promise<Balance> => {
  try {
    while ((await store.accounts.sweep()) > 0);
    return await store.accounts.balance({ organisation: "acme", member: "alice" })
  } finally {
    await store.close()
  }
}

const within = async <T>(site: Site, work: (site: Site) => Promise<T>): Promise<T> => {
  try {
    return await work(site)
  } finally {
    site.remove()
  }
}
