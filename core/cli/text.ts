/** Tables, amounts and names as people read and write them. */
import { creditsJson } from "../catalog/credits.ts"
import { written } from "../observe/clean.ts"
import { microsPerCredit } from "../offer.ts"
import type { Balance } from "../state/store.ts"
import { CliError } from "./command.ts"

/** What would end a line, colour the screen or turn the direction of writing. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** One line that steers no terminal, whatever somebody put in it: controls are written out, as `\u001b`. */
export const visible = (text: string): string => text.replace(controls, written)

const isNumber = (cell: string): boolean => /^-?\d[\d.]*$/.test(cell)

/** Columns as wide as their widest cell, two spaces apart; a column of numbers is flush right. Controls are visible. */
export const table = (head: readonly string[], given: readonly (readonly string[])[]): string => {
  const rows = given.map(row => row.map(visible))
  const columns = head.map((title, index) => {
    const cells = rows.map(row => row[index] ?? "")
    const width = Math.max(title.length, ...cells.map(cell => cell.length))
    return { width, right: cells.length > 0 && cells.every(isNumber) }
  })
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ width, right }, index) =>
        right ? (cells[index] ?? "").padStart(width) : (cells[index] ?? "").padEnd(width),
      )
      .join("  ")
      .trimEnd()
  return [head.map(title => title.toUpperCase()), ...rows].map(line).join("\n")
}

/** Pairs of name and value, one a line; controls are visible. */
export const facts = (pairs: readonly (readonly [name: string, value: string])[]): string => {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${visible(value)}`.trimEnd()).join("\n")
}

/** A balance for JSON. */
export const inCredits = ({ granted, available, held, spent }: Balance): Readonly<Record<keyof Balance, unknown>> => ({
  granted: creditsJson(granted),
  available: creditsJson(available),
  held: creditsJson(held),
  spent: creditsJson(spent),
})

/**
 * Whole micros of an amount of credits as typed.
 *
 * @throws CliError (exit code 2) unless it is a positive decimal with at most six places, below 2^53 micros
 */
export const microsOf = (text: string): number => {
  const [, whole, rest = ""] = /^(\d{1,16})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  const micros = whole === undefined ? 0n : BigInt(whole) * BigInt(microsPerCredit) + BigInt(rest.padEnd(6, "0"))
  if (micros <= 0n || micros > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new CliError(`${text} is not an amount of credits: expected a number above 0 with at most six decimals`, 2)
  }
  return Number(micros)
}

export const dateText = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, "Z")
