/** Sums over daily usage in the embedded store. */

import type { DatabaseSync, StatementSync } from "node:sqlite"
import { storeUnavailable } from "../failure.ts"
import { type UsageBook, type UsageGroup, type UsageQuery, type UsageRow, usageGroups } from "../store.ts"
import { quantityNames } from "../usage-sums.ts"

const statement = (by: UsageGroup): string => `
  SELECT u.${by} AS name, ${quantityNames.map(name => `sum(u.${name}) AS ${name}`).join(", ")}
  FROM usage u JOIN accounts a ON a.id = u.account
  WHERE a.organisation = ? AND a.member = ? AND u.day BETWEEN ? AND ? AND (? IS NULL OR u.key = ?)
  GROUP BY u.${by} ORDER BY u.${by}`

export class SqliteUsage implements UsageBook {
  readonly #by: ReadonlyMap<UsageGroup, StatementSync>

  constructor(database: DatabaseSync) {
    this.#by = new Map(usageGroups.map(by => [by, database.prepare(statement(by))]))
  }

  async query({ member, key, from, to, by }: UsageQuery): Promise<readonly UsageRow[]> {
    const only = key ?? null
    try {
      const rows = this.#by.get(by)!.all(member.organisation, member.member, from, to, only, only)
      return rows.map(row => ({ ...row })) as unknown as readonly UsageRow[]
    } catch (cause) {
      throw storeUnavailable(cause)
    }
  }
}
