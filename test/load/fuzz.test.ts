import t from "tap"
import { fuzzParts } from "./fuzz-parts.ts"

/** A taste of what `npm run fuzz` does for minutes. */
const seconds = 5

for (const part of fuzzParts)
  t.test(`nearly right input breaks nothing: ${part.name}`, async t => {
    const seed = Date.now() % 1_000_000_000
    const { cases, wrong } = await part({ seed, seconds })
    t.same(wrong, [], `seed ${seed}`)
    t.ok(cases > 0, `${cases} cases`)
  })
