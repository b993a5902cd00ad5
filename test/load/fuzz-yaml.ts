/** Configuration that is nearly right: it is taken, or every problem is told with file, line and column. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ConfigError, loadConfig } from "../../core/catalog/load.ts"
import { read } from "../fixtures/sources.ts"
import { expect, type FuzzOptions, type FuzzReport, fuzz } from "./fuzz-report.ts"
import { mutated } from "./mutate.ts"
import { between } from "./random.ts"

const words: readonly string[] = [
  "\n",
  "  ",
  "\t",
  ":",
  ": ",
  "- ",
  "{",
  "}",
  "[",
  "]",
  "#",
  "&a ",
  "*a",
  "<<: *a\n",
  "!!js/function ",
  "!!binary ",
  "---\n",
  "...\n",
  "|\n",
  '"',
  "'",
  "\0",
  "\u2028",
  "null",
  "~",
  "yes",
  "-1",
  "1e400",
  "0x10",
  "99999999999999999999",
  "__proto__: {}\n",
  "constructor: 1\n",
  "a".repeat(5_000),
  "[".repeat(200),
]

/** The first models are enough: what is wrong further down is found in the same way. */
const catalogBytes = 12_000

const files = {
  "gateway.yaml": () => read("config/gateway.yaml"),
  "sandbox.yaml": () => read("config/sandbox.yaml"),
  "catalog.yaml": () => {
    const text = read("config/catalog.yaml")
    return text.slice(0, text.lastIndexOf("\n\n", catalogBytes) + 1)
  },
} as const

type Name = keyof typeof files
const fileNames = Object.keys(files) as Name[]

export const fuzzYaml = async (options: FuzzOptions): Promise<FuzzReport> => {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-fuzz-"))
  const texts = Object.fromEntries(fileNames.map(name => [name, Buffer.from(files[name]())])) as Record<Name, Buffer>
  const secrets = texts["gateway.yaml"].toString().matchAll(/env: (\w+)/g)
  const env = Object.fromEntries([...secrets].map(([, name]) => [name, "https://127.0.0.1"]))
  try {
    return await fuzz("yaml", options, async random => {
      const bent = fileNames[between(0, fileNames.length - 1, random)] as Name
      for (const name of fileNames)
        await writeFile(join(folder, name), name === bent ? mutated(texts[name], words, random) : texts[name])
      const top = bent === "catalog.yaml" ? "sandbox.yaml" : bent
      return [await loaded(join(folder, top), env)]
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const loaded = async (file: string, env: Readonly<Record<string, string>>): Promise<string> => {
  try {
    await loadConfig(file, { env })
    return "taken"
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const problem of error.problems)
      expect(/^\S+:\d+:\d+ |^\.\.\. and \d+ more$/.test(problem), `a problem without its place: ${problem}`)
    return "refused"
  }
}
