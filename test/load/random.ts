/** Chance that can be run again: the same seed gives the same numbers. */

/** Numbers in [0, 1); a multiply-and-shift generator of 32 bits, good enough to choose faults by. */
export const randomOf = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}

/** One of the rows, by their weights. */
export const pick = <Row extends { readonly weight: number }>(rows: readonly Row[], random: () => number): Row => {
  let left = random() * rows.reduce((sum, { weight }) => sum + weight, 0)
  for (const row of rows) {
    left -= row.weight
    if (left < 0) return row
  }
  return rows[rows.length - 1] as Row
}

export const between = (least: number, most: number, random: () => number): number =>
  least + Math.floor(random() * (most - least + 1))

/** The value after `--name` on the command line. */
export const numberAfter = (name: string, otherwise: number): number => {
  const at = process.argv.indexOf(`--${name}`)
  if (at < 0) return otherwise
  const value = Number(process.argv[at + 1])
  if (Number.isFinite(value) && value >= 0) return value
  throw new Error(`--${name} takes a number`)
}
