/** In which day of a deployment a time falls. */

/** Zones are offset by whole quarters of an hour. */
const quarterMs = 900_000

/**
 * `YYYY-MM-DD` of a time (Unix milliseconds) in a zone, which a reload may change. Formatting costs a microsecond, so
 * the answer of the present quarter is kept.
 *
 * @param timezone IANA name
 */
export const dayIn = (timezone: () => string): ((at: number) => string) => {
  let zone = ""
  let format = new Intl.DateTimeFormat()
  let quarter = Number.NaN
  let kept = ""
  return at => {
    const now = Math.floor(at / quarterMs)
    const wanted = timezone()
    if (wanted !== zone) {
      zone = wanted
      // Swedes write dates so.
      format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" })
    } else if (now === quarter) return kept
    quarter = now
    kept = format.format(at)
    return kept
  }
}
