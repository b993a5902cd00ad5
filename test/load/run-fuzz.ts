/** `npm run fuzz -- --minutes N --seed S`: each part gets its share of the time. */

import { type FuzzPart, fuzzParts } from "./fuzz-parts.ts"
import { numberAfter } from "./random.ts"

const minutes = numberAfter("minutes", 5)
const seed = numberAfter("seed", Date.now() % 1_000_000_000)
const seconds = (minutes * 60) / fuzzParts.length

const run = async (part: FuzzPart): Promise<void> => {
  const report = await part({ seed, seconds })
  console.log(JSON.stringify(report, null, 2))
  if (report.wrong.length > 0) process.exitCode = 1
}

console.error(`seed ${seed}`)
for (const part of fuzzParts) await run(part)
