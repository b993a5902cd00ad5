/**
 * Organisations, members and keys on Redis. They lie on different nodes of a cluster, so creating a key is several
 * commands: indexes first, the key that counts last.
 */

import type { Directory, Identity, KeyRecord, KeyState, MemberRef, Organisation, OrganisationChange } from "../store.ts"
import type { Keys } from "./keys.ts"
import type { Link } from "./link.ts"
import { scripts } from "./scripts.ts"

/** Organisation switches count within this time; keys and money at once. */
const rememberedMs = 1_000

interface Remembered {
  readonly until: number
  readonly organisation: Promise<Organisation | undefined>
}

export class RedisDirectory implements Directory {
  readonly #link: Link
  readonly #keys: Keys
  readonly #steady: () => number
  readonly #remembered = new Map<string, Remembered>()

  constructor(link: Link, keys: Keys, steady: () => number) {
    this.#link = link
    this.#keys = keys
    this.#steady = steady
  }

  async identify(digest: string): Promise<Identity | undefined> {
    const text = await this.#get(this.#keys.key(digest))
    if (text === null) return undefined
    const key = JSON.parse(text) as KeyRecord
    const organisation = await this.#recent(key.organisation)
    return organisation && { key, organisation }
  }

  async organisation(name: string): Promise<Organisation | undefined> {
    const text = await this.#get(this.#keys.organisation(name))
    return text === null ? undefined : (JSON.parse(text) as Organisation)
  }

  async organisations(): Promise<readonly Organisation[]> {
    const names = (await this.#link.command("SMEMBERS", this.#keys.organisations)) as string[]
    const found = await Promise.all(names.sort().map(name => this.organisation(name)))
    return found.filter(organisation => organisation !== undefined)
  }

  async createOrganisation(organisation: Organisation): Promise<boolean> {
    const { name } = organisation
    await this.#link.command("SADD", this.#keys.organisations, name)
    return this.#create(this.#keys.organisation(name), organisation)
  }

  async changeOrganisation(name: string, change: OrganisationChange): Promise<Organisation | undefined> {
    const changed = await this.#change<Organisation>(this.#keys.organisation(name), before => ({
      ...before,
      ...change(before),
      name,
    }))
    this.#remembered.delete(name)
    return changed
  }

  async members(organisation: string): Promise<readonly string[]> {
    return ((await this.#link.command("SMEMBERS", this.#keys.members(organisation))) as string[]).sort()
  }

  async createMember({ organisation, member }: MemberRef): Promise<boolean> {
    return (await this.#link.command("SADD", this.#keys.members(organisation), member)) === 1
  }

  async keys(organisation: string): Promise<readonly KeyRecord[]> {
    const digests = (await this.#link.command("SMEMBERS", this.#keys.keysOfOrganisation(organisation))) as string[]
    const texts = await Promise.all(digests.map(digest => this.#get(this.#keys.key(digest))))
    const records = texts.filter(text => text !== null).map(text => JSON.parse(text) as KeyRecord)
    return records
      .filter(record => record.organisation === organisation)
      .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
  }

  async createKey({ id, organisation, member, name, state, createdAt }: KeyRecord, digest: string): Promise<boolean> {
    await this.#link.command("SET", this.#keys.keyId(id), digest, "NX")
    if ((await this.#get(this.#keys.keyId(id))) !== digest) return false
    await this.#link.command("SADD", this.#keys.keysOfOrganisation(organisation), digest)
    return this.#create(this.#keys.key(digest), { id, organisation, member, name, state, createdAt })
  }

  async changeKey(id: string, state: KeyState): Promise<KeyRecord | undefined> {
    const digest = await this.#get(this.#keys.keyId(id))
    if (digest === null) return undefined
    return this.#change<KeyRecord>(this.#keys.key(digest), before =>
      before.id !== id ? undefined : before.state === "revoked" ? before : { ...before, state },
    )
  }

  async #get(key: string): Promise<string | null> {
    return (await this.#link.command("GET", key)) as string | null
  }

  async #create(key: string, record: object): Promise<boolean> {
    return (await this.#link.command("SET", key, JSON.stringify(record), "NX")) === "OK"
  }

  /** Compare and set until nobody came between; the record as it is then. */
  async #change<T extends object>(key: string, change: (before: T) => T | undefined): Promise<T | undefined> {
    for (;;) {
      const text = await this.#get(key)
      const after = text === null ? undefined : change(JSON.parse(text) as T)
      if (text === null || after === undefined) return undefined
      if ((await this.#link.script(scripts.replace, [key], text, JSON.stringify(after))) === 1) return after
    }
  }

  #recent(name: string): Promise<Organisation | undefined> {
    const now = this.#steady()
    const known = this.#remembered.get(name)
    if (known !== undefined && known.until > now) return known.organisation
    const organisation = this.organisation(name)
    const remembered = { until: now + rememberedMs, organisation }
    this.#remembered.set(name, remembered)
    organisation.catch(() => {
      if (this.#remembered.get(name) === remembered) this.#remembered.delete(name)
    })
    return organisation
  }
}
