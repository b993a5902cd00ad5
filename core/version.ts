import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const text = ["../package.json", "../../package.json"].flatMap(path => {
  try {
    return [readFileSync(fileURLToPath(new URL(path, import.meta.url)), "utf8")]
  } catch {
    return []
  }
})[0]

/** Of package.json, which lies one folder up in a clone and two in the package. */
export const version: string = text === undefined ? "unknown" : (JSON.parse(text) as { version: string }).version
