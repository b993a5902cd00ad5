/** The table of promises in core/README.md has no row without a test that exists. */

import t from "tap"
import { filesBelow, read } from "../fixtures/sources.ts"

const rows = read("core/README.md")
  .split("\n")
  .filter(line => line.startsWith("| ") && line.includes("`test/"))

const tests = filesBelow("test").filter(file => file.endsWith(".test.ts"))

const matching = (pattern: string): readonly string[] => {
  const form = new RegExp(`^${pattern.replaceAll("*", "[^/]*")}\\.test\\.ts$`)
  return tests.filter(file => form.test(file))
}

t.test("each promise names tests, and each of them is there", async t => {
  t.ok(rows.length > 20)
  for (const row of rows) {
    const named = [...row.matchAll(/`(test\/[^`]+)`/g)].map(match => match[1] as string)
    for (const pattern of named) t.ok(matching(pattern).length > 0, `${pattern} of: ${row.slice(0, 60)}`)
  }
})
