/** Opens what a command works on, and closes it again whatever happens. */
import { statSync } from "node:fs"
import { type Config, loadConfig } from "../catalog/load.ts"
import { nameRule, plainName } from "../catalog/name.ts"
import { isGatewayError } from "../errors.ts"
import { dayIn } from "../state/day.ts"
import { openStore } from "../state/open.ts"
import type { Entry, MemberRef, Organisation, Store } from "../state/store.ts"
import { type Answer, CliError, type Input, word } from "./command.ts"

/** A gateway may be running: the command writes beside it, and makes no holds. */
const storeOptions = { now: Date.now, owner: false } as const

export interface Opened {
  readonly config: Config
  readonly store: Store
}

/** @param makes the command that may begin a store; the others would work on an empty one, and find nothing wrong with it */
export const withStore = async (
  input: Input,
  work: (opened: Opened) => Promise<Answer>,
  { makes = false }: { readonly makes?: boolean } = {},
): Promise<Answer> => {
  const config = await loadConfig(input.file, { env: input.terminal.env, storeOnly: true })
  if (!makes) assertThere(config.store)
  const store = await openStore(config.store, { ...storeOptions, day: dayIn(() => config.timezone) })
  try {
    return await work({ config, store })
  } catch (error) {
    const why = away(store, error)
    throw why === undefined ? error : new CliError(why)
  } finally {
    await store.close()
  }
}

const assertThere = (store: Config["store"]): void => {
  if (store.kind !== "sqlite" || store.path === ":memory:") return
  // A file that was cut to nothing would open as a new store too.
  if ((statSync(store.path, { throwIfNoEntry: false })?.size ?? 0) > 0) return
  throw new CliError(`there is no store at ${store.path}: \`tollgate org create\` or \`tollgate serve\` begins one`)
}

/** Which store does not answer and why, for the operator; `undefined` for any other error. */
export const away = ({ kind }: Store, error: unknown): string | undefined =>
  isGatewayError(error) && error.code === "store_unavailable"
    ? `the store (${kind}) does not answer: ${rootOf(error)}`
    : undefined

/** The deepest cause: Redis is away because a connection was refused. */
const rootOf = (error: Error & { readonly code?: string }): string =>
  error.cause instanceof Error ? rootOf(error.cause) : error.message || (error.code ?? error.name)

/** A name that is about to be created. */
export const newName = (name: string): string => {
  if (plainName.test(name)) return name
  throw new CliError(`${name} is not a valid name: expected ${nameRule}`, 2)
}

export const organisationOf = async (store: Store, input: Input): Promise<Organisation> => {
  const name = word(input, 0)
  const organisation = await store.directory.organisation(name)
  if (organisation === undefined) throw new CliError(`there is no organisation ${name}`)
  return organisation
}

const pageRows = 500

/** A member's ledger, the oldest row first. */
export async function* rowsOf(store: Store, member: MemberRef): AsyncGenerator<Entry> {
  for (let after = 0; ; ) {
    const page = await store.accounts.entries(member, { after, limit: pageRows })
    yield* page
    if (page.length < pageRows) return
    after = page.at(-1)!.sequence
  }
}

/** The member that the first two words name; it exists. */
export const memberOf = async (store: Store, input: Input): Promise<MemberRef> => {
  const { name } = await organisationOf(store, input)
  const member = word(input, 1)
  return existing(store, { organisation: name, member })
}

/**
 * @param where what the error begins with
 * @throws CliError when the organisation has no such member
 */
export const existing = async (store: Store, member: MemberRef, where = ""): Promise<MemberRef> => {
  if ((await store.directory.members(member.organisation)).includes(member.member)) return member
  throw new CliError(`${where}${member.organisation} has no member ${member.member}`)
}
