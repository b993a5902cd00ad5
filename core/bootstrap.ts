/** Creates what the configuration's `bootstrap` names and the store does not have yet; never changes what exists. */

import type { BootstrapOrganisation } from "./catalog/load.ts"
import type { Clock, Log } from "./plugin.ts"
import type { Store } from "./state/store.ts"

const againMs = 1_000

/** Tries again until the store answers, so that a gateway may start before its store. The answer ends the trying. */
export const bootstrap = async (
  organisations: readonly BootstrapOrganisation[],
  store: Store,
  clock: Clock,
  log: Log,
): Promise<() => void> => {
  let cancel = (): void => {}
  const attempt = async (): Promise<void> => {
    try {
      for (const organisation of organisations) await create(organisation, store, clock)
    } catch (cause) {
      log.warn({ err: cause }, "bootstrap waits for the store")
      cancel = clock.after(againMs, () => void attempt())
    }
  }
  await attempt()
  return () => cancel()
}

const create = async (
  { name, gateway, models, members }: BootstrapOrganisation,
  store: Store,
  clock: Clock,
): Promise<void> => {
  await store.directory.createOrganisation({ name, title: name, gateway, models, disabled: [] })
  for (const { name: member, micros, keys } of members) {
    const ref = { organisation: name, member }
    if (await store.directory.createMember(ref)) {
      if (micros > 0) await store.accounts.grant(`bootstrap:${name}/${member}`, ref, micros, "bootstrap")
    }
    for (const digest of keys) {
      const record = {
        ...ref,
        id: `key_${digest.slice(0, 12)}`,
        name: "bootstrap",
        state: "valid",
        createdAt: clock.now(),
      } as const
      await store.directory.createKey(record, digest)
    }
  }
}
