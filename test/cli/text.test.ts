import fc from "fast-check"
import t from "tap"
import { creditsText } from "../../core/catalog/credits.ts"
import { facts, microsOf, table, visible } from "../../core/cli/text.ts"

t.test("an amount that is printed can be typed again, to the micro", async t => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      micros => microsOf(creditsText(micros)) === micros,
    ),
    { verbose: 1 },
  )
  t.equal(creditsText(-1_500_000), "-1.5")
  t.equal(creditsText(0), "0")
  t.equal(microsOf("0.000001"), 1)
})

t.test("what is no positive amount of whole micros is refused as a wrong word", async t => {
  for (const text of ["", "0", "0.0", "-1", "+1", "1e3", "0.0000001", "1,5", "NaN", "9007199255", " 1", "1."]) {
    t.throws(() => microsOf(text), { name: "CliError" }, JSON.stringify(text))
  }
})

t.test("columns are as wide as their widest cell, and numbers stand flush right", async t => {
  const rows = [
    ["alice", "7"],
    ["bo", "1200.5"],
  ]
  t.equal(table(["member", "credits"], rows), ["MEMBER  CREDITS", "alice         7", "bo       1200.5"].join("\n"))
})

t.test("a table without rows still names its columns", async t => {
  t.equal(table(["id", "state"], []), "ID  STATE")
})

t.test("controls are written out, and columns are as wide as what is written", async t => {
  t.equal(visible("\t\u0000\u007f\u0085\u2028\u2066 é 한 \\n"), "\\u0009\\u0000\\u007f\\u0085\\u2028\\u2066 é 한 \\n")
  t.equal(table(["a", "b"], [["\n", "x"]]), "A       B\n\\u000a  x")
  t.equal(facts([["name", "a\r\nb"]]), "name  a\\u000d\\u000ab")
})
