/** How a part of the fuzzing runs and what it tells: each case has a seed of its own, so that it can be run again alone. */

import { randomOf } from "./random.ts"

export interface FuzzOptions {
  readonly seed: number
  readonly seconds: number
}

export interface FuzzReport {
  readonly part: string
  readonly seed: number
  cases: number
  /** What came of the cases, how often. */
  readonly seen: Record<string, number>
  readonly wrong: string[]
}

/** After so many the rest would say the same. */
const wrongMax = 5

/** Runs cases until the time is over. A case gives what came of it; it throws what is wrong. */
export const fuzz = async (
  part: string,
  { seed, seconds }: FuzzOptions,
  one: (random: () => number, seed: number) => Promise<readonly string[]>,
): Promise<FuzzReport> => {
  const report: FuzzReport = { part, seed, cases: 0, seen: {}, wrong: [] }
  const end = performance.now() + seconds * 1_000
  for (let next = seed; performance.now() < end && report.wrong.length < wrongMax; next += 1) {
    report.cases += 1
    try {
      for (const name of await one(randomOf(next), next)) report.seen[name] = (report.seen[name] ?? 0) + 1
    } catch (error) {
      report.wrong.push(`${part}, seed ${next}: ${wordsOf(error)}`)
    }
  }
  return report
}

const wordsOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${wordsOf(error.cause)}; ${error.message}`
}

export const expect = (right: boolean, message: string): void => {
  if (!right) throw new Error(message)
}
