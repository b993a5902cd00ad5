/** Words into commands. The owner of commander. */
import { Command as Commander, CommanderError } from "commander"
import { ConfigError } from "../catalog/load.ts"
import { version } from "../version.ts"
import { checkCommands } from "./check.ts"
import { type Answer, CliError, type Command, type Terminal } from "./command.ts"
import { moneyCommands } from "./money.ts"
import { organisationCommands } from "./organisations.ts"
import { peopleCommands } from "./people.ts"
import { serveCommands } from "./serve.ts"
import { visible } from "./text.ts"

const commands: readonly Command[] = [
  ...serveCommands,
  ...checkCommands,
  ...organisationCommands,
  ...peopleCommands,
  ...moneyCommands,
]

const groups: Readonly<Record<string, string>> = {
  org: "organisations and what they may use",
  member: "members of an organisation",
  key: "keys of members",
  credits: "grants and balances",
  ledger: "the append-only record of credits",
}

const awakeMs = 60_000

const defaultFile = "config/gateway.yaml"

/**
 * Runs one command to its end.
 *
 * @param words what stands after `tollgate`
 * @returns the exit code: 0, 1 for a failure, 2 for words that mean nothing
 */
export const runCli = async (words: readonly string[], terminal: Terminal): Promise<number> => {
  const json = words.includes("--json")
  // What a command waits for may be an alarm of the clock, and those keep no process alive.
  const awake = setInterval(() => {}, awakeMs)
  let code = 0
  const say = (answer: Answer): void => {
    terminal.print(json ? JSON.stringify(answer.data) : answer.text)
    code = answer.code ?? 0
  }
  const program = programOf({ terminal, json, say })
  try {
    await program.parseAsync(words, { from: "user" })
    return code
  } catch (error) {
    const exitCode = exitCodeOf(error)
    if (exitCode === 0 || (isHelp(error) && !json)) return exitCode
    terminal.complain(json ? JSON.stringify({ error: messageOf(error) }) : `tollgate: ${textOf(error)}`)
    return exitCode
  } finally {
    clearInterval(awake)
  }
}

/** Help and the version are thrown too, when they have been printed: 0. */
const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  return error instanceof CliError ? error.exitCode : 1
}

/** Printed instead of a command that was not named. */
const isHelp = (error: unknown): boolean => error instanceof CommanderError && error.code === "commander.help"

const messageOf = (error: unknown): string => {
  if (isHelp(error)) return "a command is missing"
  const message = error instanceof Error ? error.message : String(error)
  return error instanceof CommanderError ? oneLine(message) : message
}

/** Errors quote what was typed. Only a configuration has many lines, one for each problem. */
const textOf = (error: unknown): string =>
  error instanceof ConfigError ? error.message.split("\n").map(visible).join("\n") : visible(messageOf(error))

const oneLine = (message: string): string => message.replace(/^error: /, "").replace(/\n(?=\(Did you mean)/, " ")

interface Conversation {
  readonly terminal: Terminal
  readonly json: boolean
  say(answer: Answer): void
}

const programOf = (conversation: Conversation): Commander => {
  const program = prepare(new Commander("tollgate"), conversation)
    .description("One HTTP gateway in front of every kind of AI model.")
    .version(version, "-V, --version", "print the version")
    .enablePositionalOptions() // else a command's `--name -V` would ask for the version
  for (const command of commands) addCommand(parentOf(program, command, conversation), command, conversation)
  return program
}

const prepare = (command: Commander, { terminal, json }: Conversation): Commander =>
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: text => terminal.print(text.trimEnd()),
      writeErr: help => json || terminal.complain(help.trimEnd()),
      outputError: () => {}, // `runCli` tells it
    })

const parentOf = (program: Commander, { name }: Command, conversation: Conversation): Commander => {
  const [group = "", word] = name.split(" ")
  if (word === undefined) return program
  const known = program.commands.find(command => command.name() === group)
  if (known !== undefined) return known
  const made = prepare(new Commander(group), conversation).description(groups[group] ?? "")
  program.addCommand(made)
  return made
}

const addCommand = (parent: Commander, command: Command, conversation: Conversation): void => {
  const { terminal, say } = conversation
  const made = prepare(new Commander(command.name.split(" ").at(-1)), conversation)
    .description(command.what)
    .option("--config <file>", "the gateway's configuration", defaultFile)
    .option("--json", "answer in JSON")
  for (const name of command.takes?.split(" ") ?? []) made.argument(name)
  for (const [flags, what] of command.options ?? []) made.option(flags, what)
  made.action(async () => {
    const { config, json, ...options } = made.opts<{ config: string; json?: true } & Record<string, string>>()
    say(await command.run({ words: made.args, options, file: config, json: json === true, terminal }))
  })
  parent.addCommand(made)
}
