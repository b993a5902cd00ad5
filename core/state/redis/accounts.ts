/** The money verbs on Redis: each is one script on the keys of one member. */

import { beyondGrantedMax, checkMicros, grantedMax } from "../amounts.ts"
import { memberKey, memberOf, reservationsBucket } from "../member.ts"
import type {
  Accounts,
  Balance,
  ChargeAnswer,
  ChargeDetail,
  ChargeRequest,
  Entry,
  HoldAnswer,
  HoldRequest,
  MemberRef,
  OpenHoldState,
  StoreOptions,
} from "../store.ts"
import { quantities } from "../usage-sums.ts"
import { type Keys, sweepSets } from "./keys.ts"
import type { Link } from "./link.ts"
import { scripts } from "./scripts.ts"
import type { Sweeper } from "./sweeper.ts"

export interface AccountOptions extends StoreOptions {
  /** The time argument of every script: "" lets Redis tell it. */
  readonly time: () => string
}

export class RedisAccounts implements Accounts {
  readonly #link: Link
  readonly #keys: Keys
  readonly #sweeper: Sweeper
  readonly #options: AccountOptions

  constructor(link: Link, keys: Keys, sweeper: Sweeper, options: AccountOptions) {
    this.#link = link
    this.#keys = keys
    this.#sweeper = sweeper
    this.#options = options
  }

  async hold({ id, member, micros, least, reservations: window }: HoldRequest): Promise<HoldAnswer> {
    checkMicros(micros, least)
    if (!this.#sweeper.knows(member)) await this.#sweeper.announce(member)
    const own = this.#keys.member(member)
    const keys = [own.account, own.holds, own.lives, own.ids, own.window(reservationsBucket)]
    const limit = [window?.requests ?? "", window?.windowMs ?? ""]
    const reply = await this.#run("hold", keys, id, micros, least, this.#options.holdLifeMs, ...limit)
    const [state, held] = reply as [HoldAnswer["state"], string?]
    return state === "held" ? { state, micros: Number(held) } : { state }
  }

  async renew(holds: readonly { readonly id: string; readonly member: MemberRef }[]): Promise<readonly string[]> {
    const renewed = await Promise.all(
      [...Map.groupBy(holds, ({ member }) => memberKey(member))].map(async ([key, own]) => {
        const member = memberOf(key)
        // The hold outlives the announcement that it was made under.
        if (!this.#sweeper.knows(member)) await this.#sweeper.announce(member)
        const ids = own.map(({ id }) => id)
        return this.#run("renew", [this.#keys.member(member).lives], this.#options.holdLifeMs, ...ids)
      }),
    )
    return (renewed as string[][]).flat()
  }

  async settle({ id, member, micros, detail }: ChargeRequest): Promise<ChargeAnswer> {
    checkMicros(micros)
    const own = this.#keys.member(member)
    const day = this.#today()
    const keys = [own.account, own.holds, own.lives, own.entries, own.ids, own.usage(day.slice(0, 7))]
    const rest = `,"detail":${JSON.stringify(detail)}`
    const sums = quantities(0, detail.usage).slice(2).join(" ")
    const reply = await this.#run("settle", keys, id, micros, rest, day, namesOf(detail), sums)
    const [charged, shortfall, repeated] = reply as [string, string, string]
    return { charged: Number(charged), shortfall: Number(shortfall), repeated: repeated !== "" }
  }

  async release(id: string, member: MemberRef): Promise<void> {
    const own = this.#keys.member(member)
    await this.#link.script(scripts.release, [own.account, own.holds, own.lives], id)
  }

  sweep(): Promise<number> {
    return this.#sweeper.sweep()
  }

  async refund(id: string, member: MemberRef, reason: string): Promise<number | undefined> {
    const own = this.#keys.member(member)
    const day = this.#today()
    const keys = [own.account, own.entries, own.ids, own.usage(day.slice(0, 7))]
    const reply = await this.#run("refund", keys, id, reasonOf(reason), day)
    return reply === null ? undefined : Number(reply)
  }

  async grant(id: string, member: MemberRef, micros: number, reason: string): Promise<Balance> {
    checkMicros(micros)
    // Before the money, so that no account is ever missed by the check of the ledger.
    await this.#link.command("SADD", this.#keys.accountsOf(member), memberKey(member))
    const own = this.#keys.member(member)
    const reply = await this.#run(
      "grant",
      [own.account, own.entries, own.ids],
      id,
      micros,
      reasonOf(reason),
      grantedMax,
    )
    if (reply === null) throw beyondGrantedMax(micros)
    return balanceOf(reply)
  }

  async balance(member: MemberRef): Promise<Balance> {
    const { account } = this.#keys.member(member)
    return balanceOf(await this.#link.command("HMGET", account, "granted", "available", "held", "spent"))
  }

  async holds(member: MemberRef): Promise<readonly OpenHoldState[]> {
    const own = this.#keys.member(member)
    const reply = (await this.#run("holds", [own.holds, own.lives])) as readonly string[]
    return Array.from({ length: reply.length / 3 }, (_, at) => {
      const [id, micros, left] = reply.slice(at * 3)
      return { id: id!, micros: Number(micros), expiresInMs: Number(left) }
    })
  }

  async entries(
    member: MemberRef,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly Entry[]> {
    const { entries } = this.#keys.member(member)
    const rows = await this.#link.command("XRANGE", entries, `${page.after + 1}-0`, "+", "COUNT", page.limit)
    return (rows as StreamRow[]).map(row => entryOf(row, member))
  }

  async *all(): AsyncGenerator<MemberRef> {
    for (let set = 0; set < sweepSets; set += 1) {
      const members = (await this.#link.command("SMEMBERS", this.#keys.accounts(set))) as readonly string[]
      for (const key of members) yield memberOf(key)
    }
  }

  #run(name: keyof typeof scripts, keys: readonly string[], ...args: readonly (string | number)[]): Promise<unknown> {
    return this.#link.script(scripts[name], keys, this.#options.time(), ...args)
  }

  #today(): string {
    return this.#options.day(this.#options.now())
  }
}

type StreamRow = readonly [stream: string, fields: readonly string[]]

/** The rest of a usage field behind its day: `"key","model","kind","route"]`. */
const namesOf = ({ key, model, kind, route }: ChargeDetail): string =>
  JSON.stringify([key, model, kind, route]).slice(1)

const reasonOf = (reason: string): string => `,"reason":${JSON.stringify(reason)}`

const balanceOf = (reply: unknown): Balance => {
  const [granted, available, held, spent] = (reply as readonly (string | null)[]).map(Number)
  return { granted: granted!, available: available!, held: held!, spent: spent! }
}

const entryOf = ([stream, fields]: StreamRow, { organisation, member }: MemberRef): Entry => ({
  sequence: Number(stream.slice(0, stream.indexOf("-"))),
  id: fields[1]!,
  member: { organisation, member },
  ...(JSON.parse(fields[3]!) as Omit<Entry, "sequence" | "id" | "member">),
})
