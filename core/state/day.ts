/** The calendar day of a time, in the time zone of the deployment. */

/** UTC offsets of time zones are multiples of a quarter of an hour. */
const quarterMs = 900_000

/**
 * `YYYY-MM-DD` of a time (Unix milliseconds) in a zone, which a reload may change. Formatting costs a microsecond, so
 * the result is kept for the present quarter of an hour.
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
      // The Swedish locale writes dates as YYYY-MM-DD.
      format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" })
    } else if (now === quarter) return kept
    quarter = now
    kept = format.format(at)
    return kept
  }
}
