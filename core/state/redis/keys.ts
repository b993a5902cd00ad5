/** The names of all keys. Those of a member share a hash tag, so that a script finds them on one node of a cluster. */

import { memberKey } from "../member.ts"
import type { MemberRef } from "../store.ts"

export interface MemberKeys {
  readonly account: string
  readonly holds: string
  /** When each hold lapses. */
  readonly lives: string
  readonly entries: string
  /** The ids that were served, by kind. */
  readonly ids: string
  usage(month: string): string
  window(bucket: string): string
}

export const sweepSets = 16

/** FNV-1a: any even spread will do, but it must stay the same for all versions. */
const spread = (text: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0) % sweepSets
}

export const keysOf = (prefix: string) => ({
  member(member: MemberRef): MemberKeys {
    const own = `${prefix}:{${memberKey(member)}}:`
    return {
      account: `${own}account`,
      holds: `${own}holds`,
      lives: `${own}lives`,
      entries: `${own}entries`,
      ids: `${own}ids`,
      usage: month => `${own}usage:${month}`,
      window: bucket => `${own}window:${bucket}`,
    }
  },
  /** The name of the store as a whole. */
  name: `${prefix}:name`,
  sweep: (set: number): string => `${prefix}:sweep:${set}`,
  sweepOf: (member: MemberRef): string => `${prefix}:sweep:${spread(memberKey(member))}`,
  accounts: (set: number): string => `${prefix}:accounts:${set}`,
  accountsOf: (member: MemberRef): string => `${prefix}:accounts:${spread(memberKey(member))}`,
  key: (digest: string): string => `${prefix}:key:${digest}`,
  keyId: (id: string): string => `${prefix}:key-id:${id}`,
  keysOfOrganisation: (name: string): string => `${prefix}:keys:${name}`,
  organisation: (name: string): string => `${prefix}:organisation:${name}`,
  organisations: `${prefix}:organisations`,
  members: (organisation: string): string => `${prefix}:members:${organisation}`,
  record: (key: string): string => `${prefix}:record:${key}`,
})

export type Keys = ReturnType<typeof keysOf>
