/**
 * Looks for known vulnerabilities in production dependencies and for packages with a wrong signature. A finding fails; a
 * registry that does not answer is said and passed over, so that a build can run without a network.
 */
import { spawnSync } from "node:child_process"

const ask = (...words) => {
  const { stdout } = spawnSync("npm", ["audit", ...words, "--json", "--fetch-retries=0", "--fetch-timeout=30000"], {
    encoding: "utf8",
  })
  try {
    return JSON.parse(stdout)
  } catch {
    return {}
  }
}

const known = report => {
  if (report.metadata?.vulnerabilities === undefined) return undefined
  return Object.values(report.vulnerabilities ?? {}).map(one => `${one.name} (${one.severity})`)
}

const unsigned = report => report.invalid?.map(one => `${one.name}@${one.version} has a wrong signature`)

const findings = [known(ask("--omit=dev")), unsigned(ask("signatures"))]
if (findings.includes(undefined)) console.log("the registry did not answer all questions: not wholly audited")
const found = findings.flatMap(list => list ?? [])
for (const finding of found) console.log(finding)
process.exitCode = found.length === 0 ? 0 : 1
