/** How both engines name a member, and what they keep under that name. */

import type { MemberRef } from "./store.ts"

/** Names hold no slash, so that this is unique. */
export const memberKey = (member: MemberRef): string => `${member.organisation}/${member.member}`

export const memberOf = (key: string): MemberRef => {
  const slash = key.indexOf("/")
  return { organisation: key.slice(0, slash), member: key.slice(slash + 1) }
}

/** The bucket of the window in which a member's holds are counted. */
export const reservationsBucket = "reservations"
