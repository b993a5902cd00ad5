/** Members and their keys. */
import { randomBytes } from "node:crypto"
import { creditsJson, creditsText } from "../catalog/credits.ts"
import { keyDigest } from "../kit/credentials.ts"
import type { KeyRecord, KeyState, MemberRef, Store } from "../state/store.ts"
import { type Answer, CliError, type Command, type Input, word } from "./command.ts"
import { grantOnce } from "./grant.ts"
import { memberOf, newName, organisationOf, withStore } from "./store.ts"
import { dateText, facts, inCredits, microsOf, table } from "./text.ts"

const keyVerbs: Readonly<Record<string, { readonly state: KeyState; readonly what: string }>> = {
  enable: { state: "valid", what: "let a disabled key in again" },
  disable: { state: "disabled", what: "keep a key out until it is enabled" },
  revoke: { state: "revoked", what: "end a key for ever" },
}

export const peopleCommands: readonly Command[] = [
  {
    name: "member create",
    takes: "<organisation> <member>",
    options: [["--credits <amount>", "credits granted at once"]],
    what: "create a member of an organisation",
    run: input => withStore(input, ({ store }) => createMember(store, input)),
  },
  {
    name: "member list",
    takes: "<organisation>",
    what: "list the members of an organisation with their credits",
    run: input => withStore(input, ({ store }) => listMembers(store, input)),
  },
  {
    name: "key create",
    takes: "<organisation> <member>",
    options: [["--name <title>", "what the key is for"]],
    what: "create a key; it is shown this once",
    run: input => withStore(input, ({ store }) => createKey(store, input)),
  },
  {
    name: "key list",
    takes: "<organisation>",
    what: "list the keys of an organisation, without the keys themselves",
    run: input =>
      withStore(input, async ({ store }) => {
        const { name } = await organisationOf(store, input)
        const keys = await store.directory.keys(name)
        return { data: keys, text: table(keyHead, keys.map(keyRow)) }
      }),
  },
  ...Object.entries(keyVerbs).map(([verb, { state, what }]) => ({
    name: `key ${verb}`,
    takes: "<key-id>",
    what,
    run: (input: Input) => withStore(input, ({ store }) => changeKey(store, input, state)),
  })),
]

const createMember = async (store: Store, input: Input): Promise<Answer> => {
  const { name: organisation } = await organisationOf(store, input)
  const ref: MemberRef = { organisation, member: newName(word(input, 1)) }
  const first = input.options.credits
  const micros = first === undefined ? 0 : microsOf(first)
  if (!(await store.directory.createMember(ref)))
    throw new CliError(`${organisation} has a member ${ref.member} already`)
  if (micros > 0) await grantOnce(store, { member: ref, micros, reason: "first grant" })
  return {
    data: { ...ref, credits: creditsJson(micros) },
    text: `member ${ref.member} of ${organisation}: ${creditsText(micros)} credits`,
  }
}

const listMembers = async (store: Store, input: Input): Promise<Answer> => {
  const { name: organisation } = await organisationOf(store, input)
  const names = await store.directory.members(organisation)
  const members = await Promise.all(
    names.map(async member => ({ member, ...(await store.accounts.balance({ organisation, member })) })),
  )
  return {
    data: members.map(({ member, ...balance }) => ({ organisation, member, ...inCredits(balance), unit: "credits" })),
    text: table(
      ["member", "granted", "available", "held", "spent"],
      members.map(one => [one.member, ...[one.granted, one.available, one.held, one.spent].map(creditsText)]),
    ),
  }
}

/** A key is 256 random bits; the store gets its digest and nothing else. */
const createKey = async (store: Store, input: Input): Promise<Answer> => {
  const ref = await memberOf(store, input)
  const key = `tg_${randomBytes(32).toString("base64url")}`
  const id = `key_${randomBytes(8).toString("hex")}`
  const record: KeyRecord = { ...ref, id, name: input.options.name ?? id, state: "valid", createdAt: Date.now() }
  if (!(await store.directory.createKey(record, keyDigest(key)))) throw new CliError(`key ${id} exists already`)
  return {
    data: { ...record, key },
    text: `${facts([
      ["key", key],
      ["id", id],
      ["member", `${ref.member} of ${ref.organisation}`],
    ])}\nThis is the only time that the key is shown.`,
  }
}

const changeKey = async (store: Store, input: Input, state: KeyState): Promise<Answer> => {
  const id = word(input, 0)
  const record = await store.directory.changeKey(id, state)
  if (record === undefined) throw new CliError(`there is no key ${id}`)
  if (record.state !== state) throw new CliError(`key ${id} is ${record.state}, and stays so`)
  return { data: record, text: table(keyHead, [keyRow(record)]) }
}

const keyHead = ["id", "member", "name", "state", "created"]

const keyRow = (key: KeyRecord): readonly string[] => [key.id, key.member, key.name, key.state, dateText(key.createdAt)]
