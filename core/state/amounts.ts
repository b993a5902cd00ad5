/** Which amounts a store takes: whole micros that a double holds exactly. */

/** @throws RangeError for any other number */
export const checkMicros = (...amounts: readonly number[]): void => {
  for (const micros of amounts) {
    if (!Number.isSafeInteger(micros) || micros < 0) throw new RangeError(`${micros} is not an amount of micros`)
  }
}

/** The most that a member may ever have been granted: sums stay exact. */
export const grantedMax = Number.MAX_SAFE_INTEGER

export const beyondGrantedMax = (micros: number): RangeError =>
  new RangeError(`${micros} more micros are beyond what can be counted`)
