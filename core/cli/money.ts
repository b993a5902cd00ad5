/** Credits and the ledger. */
import { creditsJson, creditsText } from "../catalog/credits.ts"
import { checkLedger, type Finding } from "../money/check.ts"
import type { Balance, Entry, MemberRef, Store } from "../state/store.ts"
import { type Answer, type Command, type Input, word } from "./command.ts"
import { grantOnce } from "./grant.ts"
import { memberOf, withStore } from "./store.ts"
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

const pageRows = 500

const entriesOf = async (store: Store, member: MemberRef): Promise<readonly Entry[]> => {
  const rows: Entry[] = []
  for (;;) {
    const page = await store.accounts.entries(member, { after: rows.at(-1)?.sequence ?? 0, limit: pageRows })
    rows.push(...page)
    if (page.length < pageRows) return rows
  }
}

const checked = async (store: Store): Promise<Answer> => {
  const findings: Finding[] = []
  for await (const finding of checkLedger(store)) findings.push(finding)
  const rows = findings.map(({ member, rule, message }) => [member.organisation, member.member, String(rule), message])
  return {
    data: { right: findings.length === 0, findings },
    text:
      findings.length === 0
        ? "every balance is the sum of its rows"
        : table(["organisation", "member", "rule", "finding"], rows),
    code: findings.length === 0 ? 0 : 1,
  }
}

const showLedger = async (store: Store, input: Input): Promise<Answer> => {
  const entries = await entriesOf(store, await memberOf(store, input))
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
