/** `npm run bench`: the table of speed. `-- --only relay --seconds 2 --json --peers`; README.md says how to read it. */

import { cpus } from "node:os"
import { parseArgs } from "node:util"
import { type Measured, type Row, rows } from "./rows.ts"
import { openStage } from "./stage.ts"

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    seconds: { type: "string", default: "2" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
  },
})

const resultOf = ({ gateway, others = {}, compare }: Measured): number | undefined => {
  const [other] = Object.values(others)
  if (gateway === undefined) return undefined
  if (compare === "alone" || other === undefined) return gateway
  return compare === "ratio" ? gateway / other : gateway - other
}

const verdictOf = (row: Row, measured: Measured): string => {
  const result = resultOf(measured)
  if (result === undefined) return measured.note ?? "failed"
  return result <= row.best ? "best" : result <= row.reach ? "reached" : "missed"
}

const digits = (value: number): string => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)

/** Both numbers of a ratio, and the ratio. */
const lineOf = (row: Row, measured: Measured): string => {
  const { gateway, others = {}, unit, compare } = measured
  const suffix = compare === "ratio" ? "x" : ` ${unit}`
  const result = resultOf(measured)
  const sides = Object.entries(others).map(([name, value]) => `${name} ${digits(value)} ${unit}`)
  const cells = [
    row.what,
    gateway === undefined ? "-" : `${digits(gateway)} ${unit}`,
    sides.join(", ") || "-",
    result === undefined ? "-" : digits(result) + suffix,
    `<= ${row.reach}${suffix}`,
    verdictOf(row, measured),
  ]
  return `| ${cells.join(" | ")} |`
}

/** Each row has processes of its own: none measures what another left behind in a heap. */
const measure = async (row: Row): Promise<Measured> => {
  const stage = openStage()
  try {
    return await row.measure(stage, { seconds: Number(values.seconds), peers: values.peers })
  } catch (error) {
    return { unit: "", compare: "alone", note: `failed: ${(error as Error).message.split("\r\n")[0]}` }
  } finally {
    await stage.close()
  }
}

const unknown = (values.only ?? []).filter(name => !rows.some(row => row.name === name))
if (unknown.length > 0) {
  console.error(`no row ${unknown.join(", ")}; there are ${rows.map(row => row.name).join(", ")}`)
  process.exit(2)
}

const [processor] = cpus()
if (!values.json) {
  console.log(`${cpus().length} x ${processor?.model}, Node ${process.version}, ${new Date().toISOString()}\n`)
  console.log("| work | gateway | against | result | reach | |\n|---|---|---|---|---|---|")
}
for (const row of rows.filter(row => values.only?.includes(row.name) ?? true)) {
  const measured = await measure(row)
  const { name, reach, best } = row
  console.log(
    values.json
      ? JSON.stringify({
          name,
          reach,
          best,
          ...measured,
          result: resultOf(measured),
          verdict: verdictOf(row, measured),
        })
      : lineOf(row, measured),
  )
}
