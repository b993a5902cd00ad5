/** What clients read when a vendor's answer fails has one owner, so that one thing has one wording. */
import t from "tap"
import { endedEarly, failedMidway, unreadable } from "../../core/index.ts"
import { filesBelow, isCode, read } from "../fixtures/sources.ts"

const owner = "core/kit/vendor-errors.ts"

t.test("each text is a sentence, and stands in one file", async t => {
  const code = [...filesBelow("core"), ...filesBelow("plugins")].filter(isCode)
  t.ok(code.includes(owner))
  for (const { message } of [unreadable(), endedEarly(), failedMidway()]) {
    t.match(message, /^The model's vendor .*\.$/)
    const [, words = ""] = /(\w+ \w+ \w+)\.$/.exec(message) ?? []
    const literal = new RegExp(`"The model's vendor [^"]*${words}\\.?"`)
    t.same(
      code.filter(file => literal.test(read(file))),
      [owner],
      words,
    )
  }
})

t.test("the cause is for the log", async t => {
  const error = unreadable("the body is no JSON")
  t.match(error, { code: "upstream_unreadable", cause: "the body is no JSON" })
  t.notMatch(error.message, "JSON")
  t.equal(failedMidway("upstream_account").code, "upstream_account")
})
