/** Durations and sizes as YAML writes them: `60s`, `25MB`. */

/** The longest delay that a timer of Node takes; a longer one would fire at once. */
export const timerMaxMs = 2 ** 31 - 1

const milliseconds: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const bytes: Readonly<Record<string, number>> = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }

/** For a plugin's options schema: what `parseDuration` takes. */
export const durationSchema = {
  type: "string",
  pattern: "^[0-9]{1,9}(\\.[0-9]{1,3})?(ms|s|m|h|d)$",
  examples: ["400ms", "60s", "1h"],
} as const
/** For a plugin's options schema: what `parseSize` takes. */
export const sizeSchema = {
  type: "string",
  pattern: "^[0-9]{1,9}(\\.[0-9]{1,3})?(B|KB|MB|GB)$",
  examples: ["64KB", "8MB", "1GB"],
} as const

/**
 * Whole milliseconds of `400ms`, `5s`, `10m`, `1h`, `7d`.
 *
 * @throws RangeError when it is none, or less than one millisecond
 */
export const parseDuration = (text: string): number => scaled(text, milliseconds, "a duration such as 400ms, 5s or 1h")

/**
 * Whole bytes of `64KB`, `8MB`, `1GB`; MB is 1024 * 1024.
 *
 * @throws RangeError when it is none, or less than one byte
 */
export const parseSize = (text: string): number => scaled(text, bytes, "a size such as 64KB, 8MB or 1GB")

const scaled = (text: string, units: Readonly<Record<string, number>>, expected: string): number => {
  const [, number, name = ""] = /^(\d{1,9}(?:\.\d{1,3})?)([A-Za-z]{1,2})$/.exec(text) ?? []
  const unit = Object.hasOwn(units, name) ? units[name] : undefined
  const value = unit === undefined ? 0 : Math.round(Number(number) * unit)
  if (value < 1) throw new RangeError(`${JSON.stringify(text)} is not ${expected}`)
  return value
}
