/** Words into commands. The owner of commander. */
import { Command as Commander, CommanderError } from "commander"
import { checkCommands } from "./check.ts"
import { type Answer, CliError, type Command, type Terminal } from "./command.ts"
import { moneyCommands } from "./money.ts"
import { organisationCommands } from "./organisations.ts"
import { peopleCommands } from "./people.ts"
import { serveCommands } from "./serve.ts"

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
  const program = programOf(terminal, answer => {
    terminal.print(json ? JSON.stringify(answer.data) : answer.text)
    code = answer.code ?? 0
  })
  try {
    await program.parseAsync(words, { from: "user" })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return exitCodeOf(error)
    const message = error instanceof Error ? error.message : String(error)
    terminal.complain(json ? JSON.stringify({ error: message }) : `tollgate: ${message}`)
    return error instanceof CliError ? error.exitCode : 1
  } finally {
    clearInterval(awake)
  }
}

/** commander has said what is wrong (or the help that was asked for) by itself. */
const exitCodeOf = (error: CommanderError): number => (error.exitCode === 0 ? 0 : 2)

const programOf = (terminal: Terminal, say: (answer: Answer) => void): Commander => {
  const program = prepare(new Commander("tollgate"), terminal).description(
    "One HTTP gateway in front of every kind of AI model.",
  )
  for (const command of commands) addCommand(parentOf(program, command, terminal), command, terminal, say)
  return program
}

const prepare = (command: Commander, terminal: Terminal): Commander =>
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: text => terminal.print(text.trimEnd()),
      writeErr: text => terminal.complain(text.trimEnd().replace(/^error:/, "tollgate:")),
    })

const parentOf = (program: Commander, { name }: Command, terminal: Terminal): Commander => {
  const [group = "", word] = name.split(" ")
  if (word === undefined) return program
  const known = program.commands.find(command => command.name() === group)
  if (known !== undefined) return known
  const made = prepare(new Commander(group), terminal).description(groups[group] ?? "")
  program.addCommand(made)
  return made
}

const addCommand = (parent: Commander, command: Command, terminal: Terminal, say: (answer: Answer) => void): void => {
  const made = prepare(new Commander(command.name.split(" ").at(-1)), terminal)
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
