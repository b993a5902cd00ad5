/** Opens what a command works on, and closes it again whatever happens. */
import { type Config, loadConfig } from "../catalog/load.ts"
import { dayIn } from "../state/day.ts"
import { openStore } from "../state/open.ts"
import type { MemberRef, Organisation, Store } from "../state/store.ts"
import { type Answer, CliError, type Input, word } from "./command.ts"

/** A gateway may be running: the command writes beside it, and makes no holds. */
const storeOptions = { now: Date.now, owner: false } as const

export interface Opened {
  readonly config: Config
  readonly store: Store
}

export const withStore = async (input: Input, work: (opened: Opened) => Promise<Answer>): Promise<Answer> => {
  const config = await loadConfig(input.file, { env: input.terminal.env })
  const store = await openStore(config.store, { ...storeOptions, day: dayIn(() => config.timezone) })
  try {
    return await work({ config, store })
  } finally {
    await store.close()
  }
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

/** A name that is about to be created. */
export const newName = (name: string): string => {
  if (namePattern.test(name)) return name
  throw new CliError(`${name} is no name: letters, digits and . _ : - are taken, 128 at most`, 2)
}

export const organisationOf = async (store: Store, input: Input): Promise<Organisation> => {
  const name = word(input, 0)
  const organisation = await store.directory.organisation(name)
  if (organisation === undefined) throw new CliError(`there is no organisation ${name}`)
  return organisation
}

/** The member that the first two words name; it exists. */
export const memberOf = async (store: Store, input: Input): Promise<MemberRef> => {
  const { name } = await organisationOf(store, input)
  const member = word(input, 1)
  if (!(await store.directory.members(name)).includes(member)) {
    throw new CliError(`${name} has no member ${member}`)
  }
  return { organisation: name, member }
}
