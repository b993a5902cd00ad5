/** Creates what the configuration's `bootstrap` names and the store does not have yet; never changes what exists. */

import type { BootstrapOrganisation } from "./catalog/load.ts"
import { isGatewayError } from "./errors.ts"
import type { Clock, Log } from "./plugin.ts"
import type { MemberRef, Store } from "./state/store.ts"

const againMs = 100

export interface Bootstrap {
  /** The store was away: what the configuration names may not be there yet. */
  readonly waits: boolean
  /** Ends the trying. */
  end(): void
}

/** Tries again when the store answers, so that a gateway may start before its store. */
export const bootstrap = async (
  organisations: readonly BootstrapOrganisation[],
  store: Store,
  clock: Clock,
  log: Log,
): Promise<Bootstrap> => {
  let ended = false
  let waits = false
  let told = ""
  let cancel = (): void => {}
  const again = (): void => {
    cancel = clock.after(againMs, () => (store.ready() ? void attempt() : again()))
  }
  const attempt = async (): Promise<void> => {
    try {
      for (const organisation of organisations) await create(organisation, store, clock)
      waits = false
    } catch (cause) {
      if (ended) return
      waits = isGatewayError(cause) && cause.code === "store_unavailable"
      if (told !== reasonOf(cause)) log.warn({ err: cause }, "bootstrap waits for the store")
      told = reasonOf(cause)
      again()
    }
  }
  await attempt()
  return {
    get waits() {
      return waits
    },
    end() {
      ended = true // also for a try that is under way
      cancel()
    },
  }
}

/** The same for each try that fails in the same way. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.message} ${reasonOf(error.cause)}` : String(error)

const create = async (
  { name, gateway, models, members }: BootstrapOrganisation,
  store: Store,
  clock: Clock,
): Promise<void> => {
  await store.directory.createOrganisation({ name, title: name, gateway, models, disabled: [] })
  const known = new Set(await store.directory.members(name))
  const keys = new Set((await store.directory.keys(name)).map(key => key.id))
  // At once: a store writes what comes together in one transaction.
  await Promise.all(
    members.map(async member => {
      const ref = { organisation: name, member: member.name }
      if (!known.has(member.name)) await createMember(ref, member.micros, store)
      await Promise.all(
        member.keys.filter(digest => !keys.has(keyId(digest))).map(digest => createKey(ref, digest, store, clock)),
      )
    }),
  )
}

const createMember = async (ref: MemberRef, micros: number, store: Store): Promise<void> => {
  // First, because a member that is known gets nothing more: after a crash in between the id makes the repeat harmless.
  if (micros > 0) await store.accounts.grant(`bootstrap:${ref.organisation}/${ref.member}`, ref, micros, "bootstrap")
  await store.directory.createMember(ref)
}

const keyId = (digest: string): string => `key_${digest.slice(0, 12)}`

const createKey = (ref: MemberRef, digest: string, store: Store, clock: Clock): Promise<boolean> =>
  store.directory.createKey(
    { ...ref, id: keyId(digest), name: "bootstrap", state: "valid", createdAt: clock.now() },
    digest,
  )
