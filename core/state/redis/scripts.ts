/** The scripts: one file per verb, each below the functions of `account.lua`. */

import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

export interface Script {
  readonly name: string
  readonly source: string
  /** How Redis knows it: SHA-1 of its source. */
  readonly sha: string
}

const read = (name: string): string => readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8")

const script = (name: string): Script => {
  const source = `${read("account")}\n${read(name)}`
  return { name, source, sha: createHash("sha1").update(source).digest("hex") }
}

export const scripts = {
  hold: script("hold"),
  renew: script("renew"),
  settle: script("settle"),
  release: script("release"),
  lapse: script("lapse"),
  refund: script("refund"),
  grant: script("grant"),
  holds: script("holds"),
  hit: script("hit"),
  forget: script("forget"),
  swap: script("swap"),
  replace: script("replace"),
  name: script("name"),
} as const
