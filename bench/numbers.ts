/** Numbers of noisy machines. */

/** The middle one; 0 of none. */
export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((one, other) => one - other)[numbers.length >> 1] ?? 0

export const mega = (bytes: number): number => bytes / 1024 ** 2
