/** A command of the command line as data; `program.ts` alone knows how words become commands. */

/** Where a command reads and writes; a test gives its own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  print(text: string): void
  complain(text: string): void
}

export interface Input {
  /** Positional words in their order; a variadic one lies flat at the end. */
  readonly words: readonly string[]
  /** Options by their long name in camel case. */
  readonly options: Readonly<Record<string, string | undefined>>
  /** The path of gateway.yaml. */
  readonly file: string
  readonly json: boolean
  readonly terminal: Terminal
}

/** What a command says: `data` with `--json`, else `text`. */
export interface Answer {
  readonly data: unknown
  readonly text: string
  /** 0 unless it says otherwise: a check that found something is 1. */
  readonly code?: number
}

export interface Command {
  /** `org create`: groups are made of first words. */
  readonly name: string
  /** Positional words, as `<one> [optional] [many...]`. */
  readonly takes?: string
  readonly options?: readonly (readonly [flags: string, what: string])[]
  readonly what: string
  run(input: Input): Promise<Answer>
}

/** A failure that is reported in one line. Exit code 1, or 2 when the words were wrong. */
export class CliError extends Error {
  readonly exitCode: 1 | 2

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message)
    this.name = "CliError"
    this.exitCode = exitCode
  }
}

/** A positional word that `takes` guarantees. */
export const word = (input: Input, index: number): string => {
  const found = input.words[index]
  if (found === undefined) throw new CliError(`word ${index + 1} is missing`, 2)
  return found
}
