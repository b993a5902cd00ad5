/** Credits and the ledger. */
import { creditsJson, creditsText } from "../catalog/credits.ts"
import { checkLedger, type Finding } from "../money/check.ts"
import type { Balance, Entry, MemberRef, Store } from "../state/store.ts"
import { type Answer, CliError, type Command, type Input, word } from "./command.ts"
import { grantOnce } from "./grant.ts"
import { type Settled, settleLog } from "./settle.ts"
import { memberOf, rowsOf, withStore } from "./store.ts"
import { dateText, facts, inCredits, microsOf, table } from "./text.ts"

export const moneyCommands: readonly Command[] = [
  {
    name: "credits grant",
    takes: "<organisation> <member> <amount>",
    options: [
      ["--reason <text>", "what stands in the ledger"],
      ["--id <id>", "repeat the grant of this id, which is given once"],
    ],
    what: "grant credits to a member",
    run: input =>
      withStore(input, async ({ store }) => {
        const micros = microsOf(word(input, 2))
        const member = await memberOf(store, input)
        const { id, reason = "granted by hand" } = input.options
        if (id?.trim() === "") throw new CliError("--id is empty: expected the id of a grant", 2)
        return balanceShown(member, await grantOnce(store, { member, micros, reason, id }))
      }),
  },
  {
    name: "credits show",
    takes: "<organisation> <member>",
    what: "show what a member has, holds and has spent",
    run: input =>
      withStore(input, async ({ store }) => {
        const member = await memberOf(store, input)
        return balanceShown(member, await store.accounts.balance(member))
      }),
  },
  {
    name: "ledger check",
    what: "prove that every balance is the sum of its rows",
    run: input => withStore(input, ({ store }) => checked(store)),
  },
  {
    name: "ledger show",
    takes: "<organisation> <member>",
    what: "show a member's rows, the oldest first",
    run: input => withStore(input, ({ store }) => showLedger(store, input)),
  },
  {
    name: "ledger settle",
    takes: "<log>",
    what: "charge what a gateway could not write before it ended, from its log",
    run: input => withStore(input, async ({ store }) => settledShown(await settleLog(store, word(input, 0)))),
  },
]

const balanceShown = (member: MemberRef, balance: Balance): Answer => ({
  data: { ...member, ...inCredits(balance), unit: "credits" },
  text: facts([
    ["granted", creditsText(balance.granted)],
    ["available", creditsText(balance.available)],
    ["held", creditsText(balance.held)],
    ["spent", creditsText(balance.spent)],
  ]),
})

const checked = async (store: Store): Promise<Answer> => {
  const findings: Finding[] = []
  const check = checkLedger(store)
  let step = await check.next()
  for (; step.done !== true; step = await check.next()) findings.push(step.value)
  const { members, rows } = step.value
  const lines = findings.map(({ member, rule, message }) => [member.organisation, member.member, String(rule), message])
  return {
    data: { right: findings.length === 0, members, rows, findings },
    text:
      findings.length === 0
        ? `every balance is the sum of its rows (members: ${members}, rows: ${rows})`
        : table(["organisation", "member", "rule", "finding"], lines),
    code: findings.length === 0 ? 0 : 1,
  }
}

const settledShown = (settled: readonly Settled[]): Answer => ({
  data: settled.map(({ charged, shortfall, ...rest }) => ({
    ...rest,
    charged: creditsJson(charged),
    shortfall: creditsJson(shortfall),
  })),
  text:
    settled.length === 0
      ? "the log tells no charge that was not confirmed"
      : table(["organisation", "member", "charged", "shortfall", "now", "id"], settled.map(settledRow)),
})

const settledRow = ({ organisation, member, charged, shortfall, repeated, id }: Settled): readonly string[] => [
  organisation,
  member,
  creditsText(charged),
  creditsText(shortfall),
  repeated ? "was there already" : "charged",
  id,
]

const showLedger = async (store: Store, input: Input): Promise<Answer> => {
  const entries: Entry[] = []
  for await (const entry of rowsOf(store, await memberOf(store, input))) entries.push(entry)
  return {
    data: entries.map(({ micros, shortfall, member: _, ...rest }) => ({
      ...rest,
      credits: creditsJson(micros),
      shortfall: creditsJson(shortfall),
    })),
    text: table(["row", "at", "kind", "credits", "shortfall", "model", "route", "usage", "id"], entries.map(entryRow)),
  }
}

const entryRow = (entry: Entry): readonly string[] => [
  String(entry.sequence),
  dateText(entry.at),
  entry.kind,
  creditsText(entry.micros),
  creditsText(entry.shortfall),
  entry.detail?.model ?? "",
  entry.detail?.route ?? entry.reason ?? "",
  Object.entries(entry.detail?.usage ?? {})
    .map(([bucket, count]) => `${bucket}=${count}`)
    .join(" "),
  entry.id,
]
