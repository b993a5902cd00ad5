/** What is wrong with a configuration, all of it at once. */

import type { Position } from "./config.ts"

/** Its message lists every problem, one a line: `file:line:column path: what was expected`. */
export class ConfigError extends Error {
  readonly problems: readonly string[]
  /** Every file that was read, or wanted and not there: when one of them changes, it may be right. */
  readonly files: readonly string[]

  constructor(
    problems: readonly string[],
    { files = [], ...options }: ErrorOptions & { files?: readonly string[] } = {},
  ) {
    super(problems.join("\n"), options)
    this.name = "ConfigError"
    this.problems = problems
    this.files = files
  }
}

/** A broken file can have thousands; nobody reads past these. */
const shownAtMost = 50

export class Problems {
  readonly #found: string[] = []

  add(at: Position, path: string, message: string): void {
    this.#found.push(problemText(at, path, message))
  }

  /** @throws ConfigError when anything was added */
  check(): void {
    const found = [...new Set(this.#found)]
    if (found.length === 0) return
    const rest = found.length - shownAtMost
    throw new ConfigError(rest > 0 ? [...found.slice(0, shownAtMost), `... and ${rest} more`] : found)
  }
}

export const problemText = (at: Position, path: string, message: string): string =>
  `${at.file}:${at.line}:${at.column} ${path === "" ? "(top)" : path}: ${message}`
