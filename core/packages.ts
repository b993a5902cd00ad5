/** Installed packages, found as an `import` beside the configuration would find them. */

import { readFileSync } from "node:fs"
import { createRequire, findPackageJSON } from "node:module"
import { dirname, isAbsolute, join } from "node:path"
import { pathToFileURL } from "node:url"
import { isObject } from "./kit/walk.ts"

/** The conditions of an `import` in Node (package.json, field `exports`). */
const conditions: ReadonlySet<string> = new Set(["node", "import", "module-sync", "default"])

/**
 * @param name `package`, `@scope/package`, or either with a subpath
 * @param from the file beside whose folders `node_modules` is looked for
 * @returns the file to import; `undefined` when there is no such package, also for what Node itself goes by that name
 */
export const packageFile = (name: string, from: string): string | undefined => exported(name, from) ?? main(name, from)

const exported = (name: string, from: string): string | undefined => {
  const found = manifestOf(name, from)
  if (found === undefined) return undefined
  const { file, exports } = found
  const words = name.split("/")
  const subpath = [".", ...words.slice(name.startsWith("@") ? 2 : 1)].join("/")
  const isNamed = isObject(exports) && Object.hasOwn(exports, subpath)
  const target = chosen(isNamed ? exports[subpath] : subpath === "." ? exports : undefined)
  return target === undefined ? undefined : join(dirname(file), target)
}

const manifestOf = (name: string, from: string): { readonly file: string; readonly exports: unknown } | undefined => {
  try {
    const file = findPackageJSON(name, pathToFileURL(from))
    return file === undefined ? undefined : { file, exports: JSON.parse(readFileSync(file, "utf8")).exports }
  } catch {
    return undefined
  }
}

/** The first condition that holds; the order is the package's. */
const chosen = (target: unknown): string | undefined => {
  if (typeof target === "string") return target
  if (!isObject(target)) return undefined
  for (const key in target) {
    const found = conditions.has(key) ? chosen(target[key]) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** Of packages without `exports`. */
const main = (name: string, from: string): string | undefined => {
  try {
    const found = createRequire(from).resolve(name)
    return isAbsolute(found) ? found : undefined
  } catch {
    return undefined
  }
}
