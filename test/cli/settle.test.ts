/** Charges that a gateway could not write before it ended, from the lines of its log. */
import { writeFileSync } from "node:fs"
import t, { type Test } from "tap"
import { withMember } from "../fixtures/cli.ts"
import { detail } from "../fixtures/store-contract.ts"

const lost = { unconfirmed: "charge", id: "call-1", organisation: "north", member: "alice", micros: 2_500_000, detail }

const withLog = async (t: Test) => {
  const made = await withMember(t)
  const log = `${made.file}.log`
  const settle = (...lines: readonly unknown[]) => {
    writeFileSync(log, lines.map(line => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"))
    return made.run("ledger settle --json", log)
  }
  return { ...made, settle }
}

t.test("each charge that the log tells is written once; all other lines are nothing to it", async t => {
  const { settle, json } = await withLog(t)
  const lines = [
    "base URL  http://127.0.0.1:1/v1",
    "",
    "null",
    { id: "call-0", organisation: "north", member: "alice", micros: 7 },
    { ...lost, unconfirmed: "release", id: "call-2" },
    { level: "error", time: 1, ...lost, msg: "the store has not confirmed a charge" },
    { ...lost, id: "call-3", micros: 20_000_000 },
  ]
  const said = await settle(...lines)
  t.equal(said.code, 0, said.errors)
  const whose = { organisation: "north", member: "alice", repeated: false }
  t.same(JSON.parse(said.out), [
    { ...whose, id: "call-1", charged: 2.5, shortfall: 0 },
    { ...whose, id: "call-3", charged: 10, shortfall: 10 },
  ])
  const again = await settle(...lines)
  t.match(JSON.parse(again.out), [{ repeated: true }, { repeated: true }])
  t.match(await json("credits show north alice"), { spent: 12.5, available: 0 })
  t.match((await json("ledger show north alice"))[1], { kind: "charge", id: "call-1", credits: -2.5, detail })
})

t.test("a line that is not whole, or of nobody, is named, and nothing is charged", async t => {
  const { settle, json, run, file } = await withLog(t)
  const { detail: _, ...bare } = lost
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [bare, /line 2: detail: /],
    [{ ...lost, micros: -1 }, /line 2: micros: /],
    [{ ...lost, micros: 0.5 }, /line 2: micros: /],
    [{ ...lost, micros: 2 ** 53 }, /line 2: micros: /],
    [{ ...lost, detail: { ...detail, usage: { input: -1 } } }, /line 2: detail.usage.input: /],
    [{ ...lost, detail: { ...detail, usage: { input: 1e300 } } }, /line 2: detail.usage.input: /],
    [{ ...lost, member: "bob" }, /line 2: north has no member bob/],
    [{ ...lost, organisation: "south" }, /line 2: south has no member alice/],
  ]
  for (const [line, error] of wrong) {
    const said = await settle({ ...lost, id: "right" }, line)
    t.equal(said.code, 1)
    t.match(JSON.parse(said.errors).error, error)
  }
  const missing = await run("ledger settle nowhere.log")
  t.match(missing, { code: 1, errors: /cannot read nowhere.log: / })
  t.match(await json("credits show north alice"), { spent: 0 })
  t.equal((await run("ledger settle", file)).out, "the log tells no charge that was not confirmed")
})
