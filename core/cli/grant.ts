/** A grant that is given once, although its answer may be lost. */
import { randomUUID } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import { creditsText } from "../catalog/credits.ts"
import type { Balance, MemberRef, Store } from "../state/store.ts"
import { CliError } from "./command.ts"
import { away, rowsOf } from "./store.ts"

export interface Grant {
  readonly member: MemberRef
  readonly micros: number
  readonly reason: string
  /** A new one unless this repeats an earlier grant. */
  readonly id?: string | undefined
}

/** A store that fails over is back by then. */
const defaultPatienceMs = 5_000
const retryMs = 200

/**
 * Asks again under the same id while the store is away: the verb moves credits once for each id.
 *
 * @throws CliError when the patience ends: says under which id the credits may have been granted; when the id is that of
 *   a grant of another amount
 */
export const grantOnce = async (store: Store, grant: Grant, patienceMs = defaultPatienceMs): Promise<Balance> => {
  const { id = `grant-${randomUUID()}`, member, micros, reason } = grant
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    try {
      const balance = await store.accounts.grant(id, member, micros, reason)
      if (grant.id !== undefined) await assertSame(store, { ...grant, id: grant.id })
      return balance
    } catch (error) {
      const why = away(store, error)
      if (why === undefined) throw error
      if (performance.now() >= giveUpAt) throw new CliError(`${why}; ${doubt(id, member, micros)}`)
      await pause(retryMs)
    }
  }
}

/** An id gives once: another amount under it would look granted, and is not. */
const assertSame = async (store: Store, { id, member, micros }: Grant & { readonly id: string }): Promise<void> => {
  for await (const row of rowsOf(store, member)) {
    if (row.kind !== "grant" || row.id !== id) continue
    if (row.micros === micros) return
    throw new CliError(`id ${id} stands for a grant of ${creditsText(row.micros)} already; nothing was granted now`)
  }
}

const doubt = (id: string, { organisation, member }: MemberRef, micros: number): string => {
  const whose = `${organisation} ${member}`
  const again = `tollgate credits grant ${whose} ${creditsText(micros)} --id ${id}`
  return `it may have been granted under id ${id}: see \`tollgate ledger show ${whose}\`, or repeat with \`${again}\``
}
